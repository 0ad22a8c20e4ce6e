"""The two servers, each with a folder of its own, on a free port, with the settings that the suite asks for."""

import getpass
import socket
import subprocess
import threading
import time

START_SECONDS = 60
# Tests that expect error 1205 wait no longer than needed.
SETTINGS = """SET GLOBAL sql_mode = 'NO_ENGINE_SUBSTITUTION', GLOBAL time_zone = '+00:00',
    GLOBAL innodb_lock_wait_timeout = 3, GLOBAL local_infile = ON"""
# The suite is written for a server whose character set is latin1.
DATABASE = "CREATE DATABASE test CHARACTER SET latin1 COLLATE latin1_swedish_ci"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server that is started again when a test has shut it down."""

    def __init__(self, folder):
        self.layout = folder / "layout"
        self.data = folder / "data"
        # What statements and tests may read and write.
        self.files = folder / "files"
        self.port = free_port()
        self.socket = folder / "socket"
        self.log = None
        self.process = None
        self.leaving = threading.Event()
        self.keeper = threading.Thread(target=self.keep)
        for name in ("tmp", "log"):
            (self.files / name).mkdir(parents=True)

    def __enter__(self):
        self.log = open(self.files / "server.log", "ab")
        self.initialize()
        self.start()
        self.keeper.start()
        return self

    def __exit__(self, *_):
        self.leaving.set()
        self.keeper.join()
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def initialize(self):
        """Makes the files that the first start needs."""

    def start(self):
        self.process = subprocess.Popen(self.command(), stdout=self.log, stderr=self.log)

    def keep(self):
        """Starts the server again once it has ended and the test permits it."""
        expectation = self.files / "tmp/mysqld.1.expect"
        while not self.leaving.wait(0.1):
            if self.process.poll() is None:
                continue
            words = expectation.read_text().split() if expectation.exists() else []
            if not words or words[-1] == "restart":
                self.start()

    def client(self, statements):
        return subprocess.run(
            ["mysql", "--no-defaults", "--host=localhost", f"--socket={self.socket}", "--user=root", "-N"],
            input=statements.encode(), capture_output=True, check=False,
        )  # fmt: skip

    def prepare(self):
        """An empty database `test`, and nothing else, for the next test."""
        (self.files / "tmp/mysqld.1.expect").unlink(missing_ok=True)
        end = time.monotonic() + START_SECONDS
        while (answer := self.client("SHOW DATABASES")).returncode != 0:
            if time.monotonic() > end:
                raise RuntimeError(f"{self.files} does not answer: {answer.stderr.decode()}")
            time.sleep(0.1)
        for line in self.client("XA RECOVER").stdout.decode().splitlines():
            self.client(f"XA ROLLBACK '{line.split(chr(9))[3]}'")
        system = {"information_schema", "mysql", "performance_schema", "sys", "junctor_info"}
        drops = [f"DROP DATABASE `{name}`;" for name in answer.stdout.decode().split() if name not in system]
        done = self.client("\n".join([f"{SETTINGS};", *drops, f"{DATABASE};"]))
        if done.returncode != 0:
            raise RuntimeError(f"{self.files}: {done.stderr.decode()}")


class MariaDb(Server):
    engine = "InnoDB"

    def __init__(self, folder):
        super().__init__(folder)
        # Some tests copy files of the server, which mysqltest permits only below one folder.
        self.data = self.files / "data"

    def initialize(self):
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={self.data}",
             "--auth-root-authentication-method=normal"],
            stdout=self.log, stderr=self.log, check=True,
        )  # fmt: skip

    def command(self):
        return [
            "/usr/sbin/mariadbd", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={self.data}",
            f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.socket}", "--skip-log-bin",
            f"--pid-file={self.files}/server.pid", "--innodb-buffer-pool-size=64M",
            "--innodb-flush-log-at-trx-commit=0", f"--secure-file-priv={self.files}", "--local-infile",
            "--use-stat-tables=never",
        ]  # fmt: skip


class Junctor(Server):
    engine = "Junctor"

    def __init__(self, folder, binary):
        super().__init__(folder)
        self.binary = binary

    def command(self):
        return [
            str(self.binary), "serve", "--port", str(self.port), "--socket", str(self.socket), "--data-dir",
            str(self.data), "--num-cpus", "2", "--no-cpu-binding", "--total-memory", "512M",
            "--secure-file-priv", str(self.files),
        ]  # fmt: skip
