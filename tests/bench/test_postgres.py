"""real-postgres: each connection has a process of its own, and root may not run the server."""

from pathlib import Path

import pytest
from harness import postgres_program
from harness.allocators import GLIBC, Allocator
from harness.execute import RunError
from harness.postgres_program import PostgresServer
from harness.real_suite import REAL_SUITE
from harness.workload import Length

SERVER = next(each for each in REAL_SUITE if isinstance(each, PostgresServer))


@pytest.mark.skipif(SERVER.missing() != "", reason=SERVER.missing())
def test_the_allocator_serves_all_connections(lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hakmem = Allocator("hakmem", lib.resolve())
    SERVER.prepare(Length(seconds=0.0, quick=True))
    SERVER.prove(hakmem)
    sample = SERVER.run(hakmem, 2, {})
    assert sample["user_s"] > 0, "the processes of connections have ended, and count"
    assert sample["peak_rss_kib"] > 10_000
    monkeypatch.setattr(PostgresServer, "readable", lambda *_: GLIBC)
    with pytest.raises(RunError, match=r"libc\.so\.6, not libhakmem"):
        SERVER.prove(hakmem)


def test_a_missing_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_program, "find_postgres", lambda: None)
    assert "Debian package postgresql" in SERVER.missing()
