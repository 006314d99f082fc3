"""What a profile of ten million live blocks takes: 8 MiB and a thousandth of them, at most."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from switch.conftest import Worker
from switch.outside import outside

PROGRAM = Path(__file__).parent / "many_live.c"
BLOCKS, BLOCK_BYTES = 10_000_000, 32
LIVE_BYTES = BLOCKS * BLOCK_BYTES
MIB = 1 << 20
MOST_BYTES = 8 * MIB + LIVE_BYTES // 1000


def resident_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


@pytest.fixture
def many(start_program: Callable[..., Worker]) -> Callable[[str], Worker]:
    return lambda profile: start_program(
        PROGRAM, BLOCKS, BLOCK_BYTES, env={"HAKMEM_PROFILE": profile, "HAKMEM_DECAY_MS": "0"}
    )


@pytest.fixture
def plain_bytes(many: Callable[[str], Worker]) -> Iterator[int]:
    worker = many("0")
    yield resident_bytes(worker.pid)


@pytest.mark.long("10 seconds; the others have a million")
@pytest.mark.alone
def test_ten_million_live_blocks(many: Callable[[str], Worker], plain_bytes: int) -> None:
    for profile in ("1", "4096", "64"):
        worker = many(profile)
        more_bytes = resident_bytes(worker.pid) - plain_bytes
        with outside(worker.pid) as process:
            state = process.state
            live = process.live_bytes(BLOCK_BYTES)
        print(f"HAKMEM_PROFILE={profile}: {more_bytes / MIB:.1f} MiB more resident, tables "
              f"{int(state['table_bytes']) / MIB:.1f} MiB, {int(state['samples']):,} samples, "
              f"{int(state['live_samples']):,} in the table, {int(state['halvings'])} halvings, "
              f"{live / LIVE_BYTES:.4f} of what lives")  # fmt: skip
        assert int(state["table_bytes"]) <= MOST_BYTES
        assert more_bytes <= MOST_BYTES
        if int(state["live_samples"]) > 10_000:
            assert abs(live / LIVE_BYTES - 1) < 0.05
        worker.end()
