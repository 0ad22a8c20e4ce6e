"""The models that python/migrations.py migrates."""

from django.db import models
from django.db.models.functions import Cast, Concat


class Article(models.Model):
    name = models.CharField(max_length=60, unique=True)
    price = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    data = models.JSONField(default=dict)
    key = models.UUIDField(null=True)
    weight = models.FloatField(null=True, db_comment="in kilograms")
    size = models.PositiveSmallIntegerField(default=1)
    picture = models.BinaryField(null=True)
    available = models.DurationField(null=True)
    day = models.DateField(null=True)
    at = models.TimeField(null=True)
    address = models.GenericIPAddressField(null=True)
    label = models.GeneratedField(
        expression=Concat("name", models.Value(" ("), Cast("price", models.CharField(max_length=20)), models.Value(")")),
        output_field=models.CharField(max_length=90), db_persist=True)

    class Meta:
        indexes = [models.Index(fields=["price", "-name"], name="by_price")]
        constraints = [models.CheckConstraint(condition=models.Q(price__gte=0), name="price_is_positive")]


class Order(models.Model):
    created = models.DateTimeField(auto_now_add=True)
    comment = models.TextField(blank=True, db_default="")
    number = models.BigIntegerField(null=True, db_index=True)
    replaces = models.OneToOneField("self", null=True, on_delete=models.SET_NULL)
    articles = models.ManyToManyField(Article)
