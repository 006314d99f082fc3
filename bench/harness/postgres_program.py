"""PostgreSQL as a real program: a server of many processes, one for each connection.

It refuses to be run by root: root runs it as another user, with copies of the allocator's libraries that this
user may read.  The processes of connections are forked without exec: the proof for the first one holds for
them.  CPU time and page faults are those of all processes; memory is the highest sum, seen every 50 ms, of
their proportional shares (PSS), in which a page of several processes counts once."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from .allocators import Allocator
from .build import BuildError
from .execute import RunError, Sample, user_environment
from .paths import OUTPUT, REAL
from .real_inputs import make_once
from .real_program import SHARED_VARIABLES, find_program, give
from .server_program import ServerProgram, Start, Usage, as_user, run_client, sample_of, usage_of
from .workload import Length

# Debian has the programs of each version in a folder of its own; in PATH are wrappers in Perl.
FOLDERS = "usr/lib/postgresql/*/bin"
USER = "bench"  # of the database
PROGRAMS = ("postgres", "initdb", "pgbench")
SERVER_USER, UNPRIVILEGED = "postgres", 65534  # the first where it is, else that number
SETTINGS = """
listen_addresses= fsync=off synchronous_commit=off full_page_writes=off shared_buffers=16MB work_mem=16MB
jit=off max_connections=20 max_parallel_workers_per_gather=0 autovacuum=off wal_level=minimal
max_wal_senders=0 max_logical_replication_workers=0
"""
# Connections that stay; then one for each transaction.
LOADS = ("-c 4 -M extended", "-c 2 -C")
SETUP, LOAD = REAL / "shop.sql", REAL / "shop_load.sql"
LOOK_SECONDS = 0.05
SETTLE_SECONDS = 10.0


def server_user() -> pwd.struct_passwd | None:
    """The user that root runs the server as; None: the present one.  Raises BuildError."""
    if os.geteuid() != 0:
        return None
    for entry in sorted(pwd.getpwall(), key=lambda entry: entry.pw_name != SERVER_USER):
        if entry.pw_name == SERVER_USER or entry.pw_uid == UNPRIVILEGED:
            return entry
    raise BuildError(f"root may not run PostgreSQL, and there is no user {SERVER_USER} or {UNPRIVILEGED}")


@cache
def find_postgres() -> Path | None:
    """The server, of the newest version; initdb and pgbench lie beside it."""
    folders = sorted(Path("/").glob(FOLDERS), key=lambda path: (len(path.parent.name), path.parent.name))
    on_path = find_program("postgres")
    if on_path is not None:
        folders.insert(0, Path(on_path).resolve().parent)
    complete = [each for each in folders if all((each / name).exists() for name in PROGRAMS)]
    return complete[-1] / "postgres" if complete else None


def family_of(pid: int) -> list[int]:
    """The process and its children: none of PostgreSQL's has children of its own.  Raises RunError."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise RunError("postgres has ended") from error
    return [pid, *map(int, children.split())]


def usage_of_family(pid: int) -> Usage:
    """The usage of the processes that are there, and of the children that have ended."""
    found = usage_of(pid, with_ended=True)
    for child in family_of(pid)[1:]:
        found += usage_of(child)
    return found


def pss_kib(pid: int) -> int:
    """0 when the process has just ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def is_resting(pid: int) -> bool:
    """Whether the process serves no connection: else its title has the user's name.  Ended ones have none."""
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return title != b"" and f"postgres: {USER} ".encode() not in title


class Watch:
    """Looks at the memory of a server's processes, in a thread, while the block runs."""

    def __init__(self, pid: int) -> None:
        self.peak_kib = 0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        with suppress(RunError):  # the client says it
            while not self._over.wait(LOOK_SECONDS):
                self.peak_kib = max(self.peak_kib, sum(map(pss_kib, family_of(self._pid))))

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _run(command: list[str], user: pwd.struct_passwd | None, folder: Path, script: str = "") -> None:
    """Runs one of PostgreSQL's programs on glibc.  Raises BuildError."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            input=script,
            env=user_environment() | SHARED_VARIABLES,
            capture_output=True,
            text=True,
            check=False,
            **as_user(user),
        )
    except OSError as error:
        raise BuildError(f"the database of real-postgres: {error}") from error
    if done.returncode != 0 or "ERROR:" in done.stderr:
        raise BuildError(f"the database of real-postgres: {command[0]}: {done.stderr.strip()[-300:]}")


def _write_database(path: Path, _amount: int) -> None:
    """A folder of data; its owner is the server's user."""
    server, user = find_postgres(), server_user()
    assert server is not None
    with tempfile.TemporaryDirectory(prefix="hakmem-postgres-") as name:
        folder = Path(name)
        give(folder, user)
        data = f"{folder}/data"
        making = f"--username={USER} --auth=trust --no-sync --encoding=UTF8 --locale=C --wal-segsize=1"
        _run([str(server.with_name("initdb")), "-D", data, *making.split()], user, folder)
        _run([str(server), "--single", "-j", "-F", "-D", data, "postgres"], user, folder, SETUP.read_text())
        _copy(Path(data), path)


def _copy(original: Path, copy: Path) -> None:
    """With its owner."""
    copied = subprocess.run(["cp", "-a", original, copy], capture_output=True, text=True, check=False)
    if copied.returncode != 0:
        raise BuildError(f"the database of real-postgres: {copied.stderr.strip()}")


class PostgresServer(ServerProgram):
    """`size` is the number of transactions of each connection."""

    @property
    def servers(self) -> tuple[str, ...]:
        return (str(find_postgres()),)

    def missing(self) -> str:
        if find_postgres() is None:
            return f"{self.name}: {', '.join(PROGRAMS)} are not installed: Debian package {self.package}"
        try:
            server_user()
        except BuildError as error:
            return f"{self.name}: {error}"
        return ""

    def command_text(self, length: Length) -> str:
        size = self.size(length)
        loads = "; ".join(f"pgbench {load} -t {size} -f {LOAD.name}" for load in LOADS)
        return f"postgres {' '.join(SETTINGS.split())} for {loads}"

    def write_inputs(self, _size: int) -> None:
        _database()

    @property
    def user(self) -> pwd.struct_passwd | None:
        return server_user()

    def readable(self, allocator: Allocator, folder: Path) -> Allocator:
        if allocator.library is None:
            return allocator
        for name in (allocator.library.name, *allocator.needed):
            shutil.copy(allocator.library.with_name(name), folder / name)
            (folder / name).chmod(0o755)
        return replace(allocator, library=folder / allocator.library.name)

    def start(self, folder: Path) -> Start:
        give(folder, self.user)
        data = folder / "data"
        _copy(_database(), data)
        settings = [f"unix_socket_directories={folder}", *SETTINGS.split()]
        # With its path: the server looks for its own files beside itself, by its first argument or PATH.
        command = [self.servers[0], "-D", str(data), *(word for each in settings for word in ("-c", each))]
        return Start(command, str(folder), (data / "postmaster.pid", "ready"))

    def load(self, address: str | int, size: int) -> None:
        pgbench = str(Path(self.servers[0]).with_name("pgbench"))
        for load in LOADS:
            command = [pgbench, "-h", str(address), "-U", USER, "-n", "-f", str(LOAD), "-t", str(size)]
            run_client([*command, *load.split(), "postgres"], "number of transactions actually processed")

    def measured(self, pid: int, address: str | int, size: int) -> Sample:
        with Watch(pid) as watch:
            before, begin = usage_of_family(pid), time.monotonic()
            self.load(address, size)
            seconds = time.monotonic() - begin
        deadline = time.monotonic() + SETTLE_SECONDS
        while not all(map(is_resting, family_of(pid))):
            if time.monotonic() > deadline:
                raise RunError("a connection's process has not ended")
            time.sleep(0.005)
        return sample_of(before, usage_of_family(pid), seconds, watch.peak_kib)


@cache
def _database() -> Path:
    """Named by all that it depends on: it stays for the next campaign."""
    server, user = find_postgres(), server_user()
    written = f"{server} {user.pw_name if user else ''} {SETUP.read_text()}"
    folder = OUTPUT / "real" / hashlib.sha256(written.encode()).hexdigest()[:8]
    folder.mkdir(parents=True, exist_ok=True)
    return make_once(folder / "postgres", 1, _write_database)
