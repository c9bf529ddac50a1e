"""A real PostgreSQL server for as long as some tests need one: Debian's, in a folder of its own, reached by a socket in that folder."""

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
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError

USER = "tfcourse"
# Nothing in these tests outlives the server, so that it need not wait for the disk.
OPTIONS = ("listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=40")
PATIENCE = 30.0


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        socket: the folder of its socket.
    """

    socket: Path

    def url(self, database: str) -> URL:
        """Return the address of one of its databases."""
        return URL.create("postgresql+psycopg", username=USER, database=database, query={"host": str(self.socket)})

    def create(self, template: str = "template1") -> str:
        """Make a database, a copy of another one, and return its name."""
        name = f"course_{next(_NUMBERS)}"
        self.run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return name

    def run(self, statement: str) -> None:
        """Run a statement outside all databases of the tests."""
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.execute(text(statement))
        finally:
            engine.dispose()


_NUMBERS = count()


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server, and stop it. Without the programs or the driver the test fails: it must not look as if it had passed."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not programs:
        pytest.fail("needs the server: apt-get install postgresql", pytrace=False)
    if importlib.util.find_spec("psycopg") is None:
        pytest.fail("needs the driver: pip install 'tfcourse[scale]'", pytrace=False)
    # Not below pytest's folder, which is its owner's alone; and a socket's path must be short.
    home = Path(tempfile.mkdtemp(prefix="tfcourse-pg-"))
    try:
        with _serving(programs[-1].parent, home) as server:
            yield server
    finally:
        shutil.rmtree(home)


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
        server = Server(home)
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
