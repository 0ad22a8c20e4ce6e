"""Migrations of one rich schema, up and down, by Alembic and by Django. After each step up, Alembic finds no
difference between the schema that it wanted and the one that it reads. migrations.py PORT"""

import re
import sys

import alembic.autogenerate
import alembic.migration
import alembic.operations
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

PORT = int(sys.argv[1])
URL = f"mysql+pymysql://root@127.0.0.1:{PORT}/"


def first_schema(metadata):
    sa.Table(
        "customer", metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String(80), nullable=False, comment="as on the invoice"),
        sa.Column("email", sa.String(120, collation="utf8mb4_bin"), unique=True),
        sa.Column("born", sa.Date),
        sa.Column("created", mysql.DATETIME(fsp=6), nullable=False, server_default=sa.text("CURRENT_TIMESTAMP(6)")),
        sa.Column("changed", mysql.TIMESTAMP(), server_default=sa.text("CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP")),
        sa.Column("status", sa.Enum("new", "active", "gone", name="status"), nullable=False, server_default="new"),
        sa.Column("flags", mysql.SET("a", "b", "c")),
        sa.Column("settings", sa.JSON),
        sa.Column("is_active", sa.Boolean, nullable=False, server_default=sa.text("1")),
        sa.Column("credit", sa.Numeric(20, 6), nullable=False, server_default="0.000000"),
        sa.Column("score", sa.Double),
        sa.Column("photo", mysql.MEDIUMBLOB),
        sa.Column("notes", mysql.LONGTEXT),
        sa.Column("small", mysql.SMALLINT(unsigned=True)),
        sa.Column("name_length", sa.Integer, sa.Computed("char_length(`name`)", persisted=True)),
        sa.Index("by_name", "name", "born"),
        sa.CheckConstraint("credit >= 0", name="credit_is_positive"),
        comment="customers of the shop",
    )
    sa.Table(
        "invoice", metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("customer_id", sa.BigInteger, nullable=False),
        sa.Column("number", sa.String(20), nullable=False),
        sa.Column("total", sa.Numeric(10, 2)),
        sa.Column("paid", sa.Time),
        sa.ForeignKeyConstraint(["customer_id"], ["customer.id"], name="invoice_customer", ondelete="CASCADE"),
        sa.UniqueConstraint("customer_id", "number", name="one_number"),
    )


def second_step(op):
    op.add_column("customer", sa.Column("phone", sa.String(30), server_default="none"))
    op.alter_column("customer", "score", new_column_name="rating", existing_type=sa.Double, type_=sa.Float)
    op.alter_column("invoice", "number", existing_type=sa.String(20), type_=sa.String(40), existing_nullable=False)
    op.create_index("by_total", "invoice", ["total"])
    op.create_table(
        "line",
        sa.Column("invoice_id", sa.Integer, sa.ForeignKey("invoice.id", name="line_invoice"), primary_key=True),
        sa.Column("position", sa.SmallInteger, primary_key=True),
        sa.Column("article", sa.Uuid, nullable=False),
        sa.Column("amount", sa.Numeric(12, 3), nullable=False),
    )
    op.drop_constraint("credit_is_positive", "customer", type_="check")
    op.bulk_insert(
        sa.table("customer", sa.column("name"), sa.column("settings", sa.JSON), sa.column("credit")),
        [{"name": f"customer {i}", "settings": {"number": i}, "credit": i} for i in range(50)],
    )


def second_step_back(op):
    op.execute("DELETE FROM customer WHERE credit > 10")
    op.drop_table("line")
    op.drop_index("by_total", "invoice")
    op.alter_column("invoice", "number", existing_type=sa.String(40), type_=sa.String(20), existing_nullable=False)
    op.alter_column("customer", "rating", new_column_name="score", existing_type=sa.Float, type_=sa.Double)
    op.drop_column("customer", "phone")
    op.create_check_constraint("credit_is_positive", "customer", "credit >= 0")


def with_alembic():
    engine = sa.create_engine(URL)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP DATABASE IF EXISTS migrations"))
        connection.execute(sa.text("CREATE DATABASE migrations CHARACTER SET utf8mb4"))
    engine = sa.create_engine(URL + "migrations")
    first, reflected, again = sa.MetaData(), sa.MetaData(), sa.MetaData()
    first_schema(first)
    with engine.connect() as connection:
        context = alembic.migration.MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True})
        op = alembic.operations.Operations(context)
        first.create_all(connection)
        difference = alembic.autogenerate.compare_metadata(context, first)
        assert not difference, difference
        reflected.reflect(connection)
        for step, back in ((second_step, second_step_back),) * 2:
            step(op)
            changed = alembic.autogenerate.compare_metadata(context, first)
            kinds = sorted({change[0][0] if isinstance(change, list) else change[0] for change in changed})
            assert kinds == ["add_column", "modify_type", "remove_column", "remove_index", "remove_table"], changed
            back(op)
            difference = alembic.autogenerate.compare_metadata(context, first)
            assert not difference, difference
        count = connection.execute(sa.text("SELECT COUNT(*), SUM(name_length), SUM(settings->'$.number') FROM customer")).one()
        assert tuple(map(int, count)) == (22, 222, 110), count
        connection.commit()
        # A schema from reflection makes the same tables again.
        tables = sorted(reflected.tables)
        texts = [connection.execute(sa.text(f"SHOW CREATE TABLE {name}")).one()[1] for name in tables]
        first.drop_all(connection)
        again.reflect(connection)
        assert not again.tables, again.tables
        reflected.create_all(connection)
        for name, text in zip(tables, texts):
            made = connection.execute(sa.text(f"SHOW CREATE TABLE {name}")).one()[1]
            assert made == re.sub(r" AUTO_INCREMENT=\d+", "", text), (made, text)
        connection.execute(sa.text("DROP DATABASE migrations"))
    print("alembic: everything as expected")


def with_django():
    import django
    from django.conf import settings
    from django.core.management import call_command

    settings.configure(
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "shop"],
        DATABASES={"default": {
            "ENGINE": "django.db.backends.mysql", "NAME": "migrations", "HOST": "127.0.0.1", "PORT": PORT, "USER": "root",
        }},
        USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    engine = sa.create_engine(URL)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP DATABASE IF EXISTS migrations"))
        connection.execute(sa.text("CREATE DATABASE migrations CHARACTER SET utf8mb4"))
    django.setup()
    from django.db import connection

    def tables():
        with connection.cursor() as cursor:
            return sorted(name for name in connection.introspection.table_names(cursor) if name.startswith("shop"))

    call_command("migrate", verbosity=0)
    assert tables() == ["shop_article", "shop_order", "shop_order_articles"], tables()
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
    from shop.models import Article, Order

    Article.objects.bulk_create([Article(name=f"article {i}", price=f"{i}.50", data={"i": i}) for i in range(20)])
    order = Order.objects.create(comment="Zoë 😀")
    order.articles.set(Article.objects.filter(price__gt=15))
    assert order.articles.count() == 5
    assert Article.objects.filter(data__i__gte=18).values_list("name", flat=True).order_by("-id")[0] == "article 19"
    assert Article.objects.get(name="article 3").label == "article 3 (3.50)"
    call_command("migrate", "shop", "0001", verbosity=0)
    assert tables() == ["shop_article"], tables()
    call_command("migrate", "shop", verbosity=0)
    assert Article.objects.count() == 20
    assert Article.objects.get(name="article 3").label == "article 3 (3.50)"
    call_command("migrate", "shop", "zero", verbosity=0)
    assert tables() == []
    call_command("migrate", "auth", "zero", verbosity=0)
    with engine.begin() as cleaning:
        cleaning.execute(sa.text("DROP DATABASE migrations"))
    print("django: everything as expected")


with_alembic()
with_django()
