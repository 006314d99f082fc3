"""A real program run on both sides: on the C library's malloc and on hakmem, with the same result.

    def job(side: Side) -> object:
        return side.run(["sqlite3", "db"], stdin=SCRIPT).stdout

    sides.same(job)

Every run on hakmem proves by hakmem's own counters that hakmem served it."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from preload import Report, clean_environment, json_stats_option, preload_environment, read_reports, served
from results import Result, Run

Command = Sequence[str | Path]
T = TypeVar("T")

RUN_TIMEOUT_S = 120.0
SERVER_TIMEOUT_S = 60.0
POLL_S = 0.05


@dataclass(frozen=True)
class Side:
    """One of the two: a folder of its own, an environment, and the proof of who served the memory.

    `library` is None on the C library's malloc.  `prefix` comes before each command (setpriv, for the
    programs that refuse root)."""

    name: str
    folder: Path
    library: Path | None
    runner: Run
    prefix: tuple[str | Path, ...] = ()

    def run(
        self,
        command: Command,
        *,
        env: Mapping[str, str] | None = None,
        timeout: float = RUN_TIMEOUT_S,
        stdin: str | None = None,
        cwd: Path | None = None,
        processes: int = 1,
        statuses: Sequence[int] = (0,),
    ) -> Result:
        """Runs `command` to its end, in the side's folder unless `cwd` names another.  On hakmem at least
        `processes` processes must have ended normally and been served by it."""
        reports = self.new_reports_folder()
        result = self.runner(
            [*self.prefix, *command],
            env=self.environment(reports) | dict(env or {}),
            timeout=timeout,
            stdin=stdin,
            cwd=cwd or self.folder,
        )
        what = f"{self.name}: {' '.join(map(str, command))[:200]}"
        said = f"{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
        assert result.returncode in statuses, f"{what}: status {result.returncode}\n{said}"
        no_complaints(result.stderr, what)
        if self.library is not None:
            prove(read_reports(reports), processes, what)
        return result

    @contextmanager
    def server(
        self,
        command: Command,
        ready: Callable[[], bool],
        *,
        stop: signal.Signals = signal.SIGTERM,
        processes: int = 1,
        blocks: int = 1,
    ) -> Iterator[None]:
        """Runs a server until the block ends, then asks it to stop and wants it to end with status 0.
        Whatever happens, none of its processes outlives the block.  On hakmem the server itself must have
        got at least `blocks` blocks from it, and at least `processes` of its processes must have been
        served by it."""
        reports = self.new_reports_folder()
        log = self.folder / "server.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [str(word) for word in (*self.prefix, *command)],
                env=self.environment(reports),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        what = f"{self.name}: {command[0]}"
        try:
            wait_until(ready, process, log, what)
            yield
        finally:
            status = end(process, stop)
        assert status == 0, f"{what} ended with status {status}\n{tail(log)}"
        no_complaints(log.read_text(errors="replace"), what)
        if self.library is not None:
            found = read_reports(reports)
            prove(found, processes, what)
            prove([report for report in found if report["pid"] == process.pid], 1, what, blocks)

    def environment(self, reports: Path) -> dict[str, str]:
        """What both sides share, so that results can be compared, and on hakmem its library."""
        shared = clean_environment() | {"LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(self.folder)}
        if self.library is None:
            return shared
        return preload_environment(self.library, json_stats_option(reports), base=shared)

    def new_reports_folder(self) -> Path:
        """A folder for one run's reports, open to every user that the run's processes may become."""
        folder = Path(tempfile.mkdtemp(prefix="reports-", dir=self.folder))
        folder.chmod(0o777)
        return folder


@dataclass(frozen=True)
class Sides:
    """The pair.  The C library's malloc comes first: it says what the result has to be."""

    glibc: Side
    hakmem: Side

    def __iter__(self) -> Iterator[Side]:
        return iter((self.glibc, self.hakmem))

    def same(self, job: Callable[[Side], T]) -> T:
        """Does `job` on both sides and returns its result, which must be the same."""
        expected = job(self.glibc)
        found = job(self.hakmem)
        assert found == expected
        return found


def prove(reports: Sequence[Report], processes: int, what: str, blocks: int = 1) -> None:
    """hakmem's own counters must say that it gave `blocks` blocks to each of `processes` of these
    processes, at least."""
    count = sum(1 for report in reports if served(report) >= blocks)
    assert count >= processes, (
        f"{what}: hakmem gave {blocks} blocks or more to {count} of the {len(reports)} processes "
        f"that reported, not to {processes}"
    )


def no_complaints(said: str, what: str) -> None:
    """hakmem speaks on standard error only of faults."""
    complaints = [line for line in said.splitlines() if line.startswith("hakmem: ")]
    assert not complaints, f"{what}: {complaints}"


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, what: str) -> None:
    """Waits for a server to answer; fails with its log when it ends or stays silent."""
    deadline = time.monotonic() + SERVER_TIMEOUT_S
    while not ready():
        assert process.poll() is None, f"{what} ended with status {process.returncode}\n{tail(log)}"
        assert time.monotonic() < deadline, f"{what} did not answer in {SERVER_TIMEOUT_S:g} s\n{tail(log)}"
        time.sleep(POLL_S)


def end(process: subprocess.Popen[bytes], stop: signal.Signals) -> int:
    """Asks a server to stop, kills what is left of its process group, and returns its status."""
    process.send_signal(stop)
    with suppress(subprocess.TimeoutExpired):
        process.wait(SERVER_TIMEOUT_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def tail(log: Path) -> str:
    """The end of a log, for a message."""
    return log.read_text(errors="replace")[-4000:]
