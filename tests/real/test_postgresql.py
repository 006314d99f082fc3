"""PostgreSQL: initdb, pgbench, and queries that take memory; the same rows in the end.

PostgreSQL refuses to run as root, so root runs it as another user, in a folder that this user owns."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from real.sides import Side, Sides

QUERIES = Path(__file__).parent / "programs" / "queries.sql"
USERS = ("postgres", "nobody")
BIN = "/usr/lib/postgresql/*/bin"
SETTINGS = "listen_addresses= fsync=off shared_buffers=64MB max_wal_size=256MB timezone=UTC"
PGBENCH = "--client=4 --jobs=2 --transactions=1500 --random-seed=11 --no-vacuum"
BACKENDS = 8  # four of pgbench, its first one, the queries', the checkpointer, the writer


@pytest.fixture
def owned_sides(sides: Sides, program: Callable[[str], Path]) -> Iterator[Sides]:
    """The sides, in folders of the user who runs the server, with a copy of the library it can read."""
    base = Path(tempfile.mkdtemp(prefix="hakmem-"))
    base.chmod(0o755)
    user = other_user()
    prefix: tuple[str | Path, ...] = ()
    if user is not None:
        identity = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        prefix = (program("setpriv"), *identity, "--")

    def owned(side: Side) -> Side:
        folder = base / side.name
        folder.mkdir()
        library = side.library and Path(shutil.copy(side.library, base))
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        return replace(side, folder=folder, library=library, prefix=prefix)

    yield Sides(*map(owned, sides))
    shutil.rmtree(base)


def other_user() -> pwd.struct_passwd | None:
    """Whom root becomes; None when the tests do not run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(names[name] for name in USERS if name in names)


@pytest.mark.long("10 seconds; redis is a server, too")
def test_initdb_pgbench_queries(owned_sides: Sides, program: Callable[[str], Path]) -> None:
    tools = {
        name: program(f"{BIN}/{name}")
        for name in ("initdb", "postgres", "pg_isready", "createdb", "pgbench", "psql")
    }

    def job(side: Side) -> str:
        connection = {"PGHOST": str(side.folder), "PGUSER": "bench", "PGDATABASE": "bench"}

        def client(name: str, *words: str, stdin: str | None = None) -> str:
            return side.run([tools[name], *words], env=connection, stdin=stdin).stdout

        def ready() -> bool:
            asked = [tools["pg_isready"], "-q", "-h", side.folder]
            return subprocess.run(asked, timeout=10, check=False).returncode == 0

        new = "--no-sync --auth=trust --username=bench --encoding=UTF8 --locale=C.UTF-8".split()
        side.run([tools["initdb"], "-D", "data", *new], processes=3)
        settings = [word for setting in SETTINGS.split() for word in ("-c", setting)]
        command = [tools["postgres"], "-D", "data", "-k", side.folder, *settings]
        with side.server(command, ready, stop=signal.SIGINT, processes=BACKENDS):
            client("createdb", "bench")
            client("pgbench", "--initialize", "--scale=3", "--quiet")
            assert "number of transactions actually processed: 6000/6000" in client(
                "pgbench", *PGBENCH.split()
            )
            # As text: the server's user need not be able to read this folder.
            return client("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", stdin=QUERIES.read_text())

    rows = owned_sides.same(job).splitlines()
    balances = rows[0].split("|")
    assert balances[0] == "balances"
    assert len(set(balances[1:])) == 1, "accounts, tellers, branches and history agree"
