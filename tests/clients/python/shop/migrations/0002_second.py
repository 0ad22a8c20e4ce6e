import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Cast, Concat


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_first")]
    operations = [
        migrations.RemoveIndex(model_name="article", name="by_title"),
        migrations.RenameField(model_name="article", old_name="title", new_name="name"),
        migrations.AlterField("article", "id", models.BigAutoField(
            auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
        migrations.AlterField("article", "name", models.CharField(max_length=60, unique=True)),
        migrations.AlterField("article", "weight", models.FloatField(db_comment="in kilograms", null=True)),
        migrations.AlterField("article", "size", models.PositiveSmallIntegerField(default=1)),
        migrations.RemoveField("article", "old"),
        migrations.AddField("article", "available", models.DurationField(null=True)),
        migrations.AddField("article", "day", models.DateField(null=True)),
        migrations.AddField("article", "at", models.TimeField(null=True)),
        migrations.AddField("article", "address", models.GenericIPAddressField(null=True)),
        migrations.AddField("article", "label", models.GeneratedField(
            db_persist=True,
            expression=Concat("name", models.Value(" ("), Cast("price", models.CharField(max_length=20)), models.Value(")")),
            output_field=models.CharField(max_length=90))),
        migrations.AddIndex("article", models.Index(fields=["price", "-name"], name="by_price")),
        migrations.AddConstraint("article", models.CheckConstraint(
            condition=models.Q(("price__gte", 0)), name="price_is_positive")),
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("comment", models.TextField(blank=True, db_default="")),
                ("number", models.BigIntegerField(db_index=True, null=True)),
                ("articles", models.ManyToManyField(to="shop.article")),
                ("replaces", models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, to="shop.order")),
            ],
        ),
    ]
