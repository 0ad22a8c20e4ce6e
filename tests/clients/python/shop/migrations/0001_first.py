from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            name="Article",
            fields=[
                ("id", models.AutoField(primary_key=True)),
                ("title", models.CharField(max_length=40, db_index=True)),
                ("price", models.DecimalField(decimal_places=2, default=0, max_digits=10)),
                ("data", models.JSONField(default=dict)),
                ("key", models.UUIDField(null=True)),
                ("weight", models.FloatField(null=True)),
                ("size", models.IntegerField(null=True)),
                ("picture", models.BinaryField(null=True)),
                ("old", models.BooleanField(default=True)),
            ],
            options={"indexes": [models.Index(fields=["price", "-title"], name="by_title")]},
        ),
    ]
