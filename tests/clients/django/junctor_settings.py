"""Settings of Django's own tests: two databases on the server at JUNCTOR_PORT."""

import os

DATABASES = {
    alias: {
        "ENGINE": "django.db.backends.mysql",
        "NAME": alias,
        "USER": "root",
        "HOST": "127.0.0.1",
        "PORT": os.environ["JUNCTOR_PORT"],
        "TEST": {"NAME": f"django_{alias}", "CHARSET": "utf8mb4"},
    }
    for alias in ("default", "other")
}
SECRET_KEY = "for tests alone"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "junctor_runner.Runner"
