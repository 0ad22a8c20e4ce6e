"""Logins of each Python client: every method over TCP, TLS and the Unix socket, the modes of TLS, and refusals.

logins.py PORT DIRECTORY PORT_WITHOUT_TLS: DIRECTORY has the server's socket and its folder `tls`.
"""

import getpass
import sys

import MySQLdb
import mysql.connector
import pymysql

PORT, DIRECTORY, PORT_WITHOUT_TLS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
SOCKET, TLS = f"{DIRECTORY}/mysql.sock", f"{DIRECTORY}/tls"
PASSWORD = "a pass, word"
ERRORS = (pymysql.err.MySQLError, mysql.connector.Error, MySQLdb.MySQLError, RuntimeError, ValueError)

TCP = {"host": "127.0.0.1", "port": PORT}
WAYS = {
    "tcp": {**TCP, "ssl_disabled": True},
    "tls": {**TCP, "ssl_ca": f"{TLS}/ca.pem", "ssl_verify_cert": True},
    "socket": {"unix_socket": SOCKET, "ssl_disabled": True},
}
CERTIFICATE = {"ssl_cert": f"{TLS}/client-cert.pem", "ssl_key": f"{TLS}/client-key.pem"}


def mysqlclient(ssl_disabled=False, ssl_ca=None, ssl_verify_cert=False, **options):
    if ssl_disabled:
        return MySQLdb.connect(ssl_mode="DISABLED", **options)
    return MySQLdb.connect(ssl_mode="VERIFY_CA" if ssl_verify_cert else "REQUIRED", ssl={"ca": ssl_ca}, **options)


def one(connection, text):
    cursor = connection.cursor()
    cursor.execute(text)
    row = cursor.fetchone()
    connection.close()
    return row


def is_encrypted(connection):
    return one(connection, "SHOW STATUS LIKE 'Ssl_version'")[1] != ""


def refused(number, connect, **options):
    """The connection fails with this error number, or with an error of the client about a running server (None)."""
    try:
        connect(**options).close()
    except ERRORS as error:
        if number is None:
            is_of_server = isinstance(error.args[0], int) and not 2000 <= error.args[0] < 3000
            assert not is_of_server and "refused" not in str(error), error
        else:
            assert error.args[0] == number, (number, error)
        return
    raise AssertionError(f"logged in, where {number} was expected: {options}")


def administrator(*texts):
    connection = pymysql.connect(unix_socket=SOCKET, user="root")
    for text in texts:
        connection.cursor().execute(text)
    connection.close()


def account(name, method, conditions=""):
    """A new account, whose password the server has not seen yet."""
    administrator(
        f"DROP USER IF EXISTS {name}",
        f"CREATE USER {name} IDENTIFIED WITH {method} BY '{PASSWORD}' {conditions}",
    )


def methods(connect, name, has_rsa):
    user = {"user": name, "password": PASSWORD}
    wrong = {"user": name, "password": PASSWORD + "?"}
    for way, options in WAYS.items():
        account(name, "mysql_native_password")
        assert one(connect(**options, **user), "SELECT CURRENT_USER()")[0] == f"{name}@%"
        refused(1045, connect, **options, **wrong)
        refused(1045, connect, **options, user=name)
        refused(1045, connect, **options, user="nobody_" + name, password=PASSWORD)
        # The first login sends the password, the second proves that the client has it.
        account(name, "caching_sha2_password")
        if way != "tcp" or has_rsa:
            refused(1045, connect, **options, **wrong)
            for _ in range(2):
                assert one(connect(**options, **user), "SELECT CURRENT_USER()")[0] == f"{name}@%"
            refused(1045, connect, **options, **wrong)
        else:
            refused(1045, connect, **options, **user)
        assert one(connect(**WAYS["tls"], **user), "SELECT 1")[0] == 1
        assert one(connect(**options, **user), "SELECT CURRENT_USER()")[0] == f"{name}@%", way


def sockets(connect, name):
    system = getpass.getuser()
    administrator(f"DROP USER IF EXISTS {name}", f"CREATE USER {name} IDENTIFIED WITH auth_socket AS '{system}'")
    assert one(connect(**WAYS["socket"], user=name), "SELECT CURRENT_USER()")[0] == f"{name}@%"
    refused(1045, connect, **WAYS["tcp"], user=name)
    refused(1045, connect, **WAYS["tls"], user=name)
    administrator(f"ALTER USER {name} IDENTIFIED WITH auth_socket AS 'nobody_{system}'")
    refused(1045, connect, **WAYS["socket"], user=name)


def tls_modes(connect, name):
    account(name, "caching_sha2_password")
    user = {**TCP, "user": name, "password": PASSWORD}
    authority = {"ssl_ca": f"{TLS}/ca.pem"}
    foreign = {"ssl_ca": f"{DIRECTORY}/foreign.pem"}
    assert is_encrypted(connect(**user)), "TLS is preferred"
    assert is_encrypted(connect(**user, **authority))
    assert is_encrypted(connect(**user, **authority, ssl_verify_cert=True))
    assert is_encrypted(connect(**user, **authority, ssl_verify_cert=True, ssl_verify_identity=True))
    assert is_encrypted(connect(**user, **authority, **CERTIFICATE, ssl_verify_cert=True))
    assert not is_encrypted(connect(**user, ssl_disabled=True))
    refused(None, connect, **user, **foreign, ssl_verify_cert=True)
    # The certificate has no such name.
    other = {**user, "host": "0.0.0.0"}
    assert is_encrypted(connect(**other, **authority, ssl_verify_cert=True))
    refused(None, connect, **other, **authority, ssl_verify_cert=True, ssl_verify_identity=True)
    stranger = {"ssl_cert": f"{DIRECTORY}/foreign.pem", "ssl_key": f"{DIRECTORY}/foreign-key.pem"}
    refused(None, connect, **user, **authority, **stranger)

    account(name, "caching_sha2_password", "REQUIRE SSL")
    refused(1045, connect, **user, ssl_disabled=True)
    assert is_encrypted(connect(**user))
    account(name, "caching_sha2_password", "REQUIRE X509")
    refused(1045, connect, **user, **authority)
    assert is_encrypted(connect(**user, **authority, **CERTIFICATE))

    account(name, "caching_sha2_password")
    administrator("SET GLOBAL require_secure_transport = ON")
    try:
        refused(3159, connect, **user, ssl_disabled=True)
        assert is_encrypted(connect(**user))
        assert not is_encrypted(connect(**WAYS["socket"], user=name, password=PASSWORD))
    finally:
        administrator("SET GLOBAL require_secure_transport = OFF")


def wrong_key(name):
    """PyMySQL needs the server's RSA key for a login that sends the password, and for no other."""
    with open(f"{TLS}/public_key.pem", "rb") as file:
        key = file.read()
    with open(f"{DIRECTORY}/foreign-public.pem", "rb") as file:
        foreign = file.read()
    user = {**WAYS["tcp"], "user": name, "password": PASSWORD}
    account(name, "caching_sha2_password")
    refused(1045, pymysql.connect, **user, server_public_key=foreign)
    assert not is_encrypted(pymysql.connect(**user, server_public_key=key))
    assert not is_encrypted(pymysql.connect(**user, server_public_key=foreign)), "the second login is a proof"


def without_tls():
    """A server without TLS: clients that prefer it go on, those that demand it do not."""
    options = {"host": "127.0.0.1", "port": PORT_WITHOUT_TLS, "user": "root"}
    for connect in (pymysql.connect, mysql.connector.connect):
        assert one(connect(**options, ssl_disabled=True), "SELECT 1")[0] == 1
        refused(None, connect, **options, ssl_ca=f"{TLS}/ca.pem", ssl_verify_cert=True)
    assert not is_encrypted(pymysql.connect(**options))


def main():
    for connect, name, has_rsa in (
        (pymysql.connect, "pymysql", True),
        (lambda **options: mysql.connector.connect(use_pure=True, **options), "connector_python", False),
    ):
        methods(connect, name, has_rsa)
        sockets(connect, name)
        tls_modes(connect, name)
        administrator(f"DROP USER {name}")
    methods(mysqlclient, "mysqlclient", True)
    sockets(mysqlclient, "mysqlclient")
    administrator("DROP USER mysqlclient")
    wrong_key("pymysql")
    administrator("DROP USER pymysql")
    without_tls()
    print("python: logins as expected")


main()
