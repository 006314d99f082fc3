"""Where a profile would be silent or wrong: counts that go round, a tool that slept, other blocks."""

import time
from collections.abc import Callable

import pytest
from hakmem.target.switch import Settings, Switch
from switch.conftest import Worker
from switch.outside import outside, wait_for

Start = Callable[..., Worker]
BLOCKS, BYTES, PERIOD = 20000, 1000, 64
OF_LAST_GENERATION = 255


def test_new_threads_are_sampled_after_any_number_of_switches(start: Start) -> None:
    """A heap that begins has seen generation 0."""
    worker = start("steps")
    worker.say("pairs 1 1")
    with outside(worker.pid) as process, Switch(process.target) as switch:
        process.write("profile_control", "generation", OF_LAST_GENERATION)
        switch.on(Settings(period_bytes=PERIOD))
        worker.say("thread")
        before = int(process.state["samples"])
        worker.say(f"pairs {BLOCKS} {BYTES}")
        assert int(process.state["samples"]) - before > BLOCKS * 0.9
        switch.off()


def test_a_lease_that_ended_is_taken_up_again(start: Start) -> None:
    """The tool was stopped for longer than its lease: threads that saw that go on."""
    worker = start("steps")
    worker.say("pairs 1 1")
    with outside(worker.pid) as process, Switch(process.target) as switch:
        switch.on(Settings(period_bytes=PERIOD, lease_s=0.01))

        def has_ended() -> bool:
            worker.say(f"pairs 1000 {BYTES}")
            is_off = process.target.schema.constant("profile_is_off")
            return int(process.state["status"]) == is_off and not process.heaps()["armed"].any()

        wait_for(has_ended, "the lease's end")
        switch.renew(600)
        before = int(process.state["samples"])
        worker.say(f"pairs {BLOCKS} {BYTES}")
        assert int(process.state["samples"]) - before > BLOCKS * 0.9
        switch.off()


def test_a_renewed_lease_disturbs_nobody(start: Start) -> None:
    worker = start("steps")
    worker.say("pairs 1 1")
    with outside(worker.pid) as process, Switch(process.target) as switch:
        switch.on(Settings(lease_s=600))
        generation = int(process.control["generation"])
        switch.renew(600)
        assert int(process.control["generation"]) == generation
        assert int(process.control["lease_ms"]) > time.monotonic() * 1000
        switch.off()


GUARDED = {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}


@pytest.mark.parametrize("size", [0, 100])
@pytest.mark.parametrize(
    "mode", [{}, {"HAKMEM_HARDEN": "1"}, GUARDED, {"HAKMEM_HARDEN": "1"} | GUARDED], ids=str
)
def test_what_is_freed_is_no_sample_any_more(start: Start, mode: dict[str, str], size: int) -> None:
    """Guarded blocks, and malloc(0) in hardened mode, lie outside of the window: their frees ask no table."""
    worker = start("steps", env={"HAKMEM_PROFILE": str(PERIOD)} | mode)
    worker.say(f"pairs 1 {BYTES}")
    with outside(worker.pid) as process:
        before = int(process.state["live_samples"])
        worker.say(f"pairs {BLOCKS} {size}")
        assert int(process.state["samples"]) > BLOCKS / 10
        assert int(process.state["live_samples"]) <= before
