"""A profile is switched on, read, switched off and refused from outside, while the program runs."""

import re
import time
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest
from hakmem.census.snapshot import take
from hakmem.commands.profile import turn
from hakmem.profile.live import read_profile
from hakmem.profile.model import Mode, Rate
from hakmem.profile.session import Plan, gather, is_on
from hakmem.profile.sites import site_table
from hakmem.target.switch import Settings
from hakmem.target.target import open_process
from results import Tally
from switch.conftest import Worker
from switch.outside import Outside, outside, wait_for

Start = Callable[..., Worker]
BLOCKS, BYTES, PERIOD = 20000, 1000, 4096
CLASS_BYTES = 1024
LEASE_S = 4.0  # longer than the tool waits for a thread that rests


def near(found: float, expected: float, share: float) -> bool:
    return abs(found - expected) <= share * expected


def test_what_is_live_is_told(start: Start) -> None:
    """Blocks from before are nobody's samples; what the profile saw is there, and goes when it is freed."""
    worker = start("steps")
    worker.say(f"take {BLOCKS} {BYTES}")
    with outside(worker.pid) as process:
        assert int(process.state["status"]) == process.target.schema.constant("profile_is_off")
        process.switch(True, period_bytes=PERIOD)
        worker.say("pairs 1 100")
        assert int(process.state["status"]) == process.target.schema.constant("profile_is_on")
        assert len(process.samples()[0]) <= 1
        worker.say(f"take {BLOCKS} {BYTES}")
        worker.say(f"pairs {BLOCKS} 200")
        assert near(process.live_bytes(CLASS_BYTES), BLOCKS * CLASS_BYTES, 0.1)
        counters = process.class_counters()
        assert int(counters["profiled_blocks"].sum()) == 2 * BLOCKS + 1
        assert near(process.sites()["allocated"]["requested"].sum(), BLOCKS * (BYTES + 200), 0.1)
        worker.say("give")
        assert process.live_bytes(CLASS_BYTES) == 0
        assert int(process.state["live_samples"]) == 0
        process.switch(False)
        worker.say("pairs 10 100")
        taken = int(process.state["samples"])
        worker.say(f"pairs {BLOCKS} {BYTES}")
        assert int(process.state["samples"]) == taken
        assert not process.heaps()["armed"].any()
        assert int(process.state["status"]) == process.target.schema.constant("profile_is_off")


LEASE = pytest.param("lease", marks=pytest.mark.long("13 seconds of waiting"))


@pytest.mark.long("2 seconds of processor time each")
@pytest.mark.parametrize("ending", ["its own", "--off", LEASE])
def test_a_program_that_rested_since_the_last_profile(start: Start, ending: str) -> None:
    """Its thread has not seen the end of that one: the next is another."""
    worker = start("steps")
    target = open_process(worker.pid)
    for _ in range(2):
        if ending != "its own":
            turn(target, Settings(PERIOD, lease_s=LEASE_S if ending == "lease" else 0))
            worker.say(f"take {BLOCKS} {BYTES}")
        if ending == "--off":
            turn(target, None)
        wait_for(lambda: ending == "its own" or not is_on(target), "the lease to end")
        expected = sum(one.weight_bytes for one in read_profile(target).samples) + BLOCKS * CLASS_BYTES
        orders = iter([f"take {BLOCKS} {BYTES}"])
        plan = Plan(for_s=0.2, settings=Settings(PERIOD))
        found = gather(target, plan, lambda _, left=orders: [worker.say(order) for order in left])
        assert "stays on" not in str(found.notes)
        assert near(sum(one.weight_bytes for one in found.profile.samples), expected, 0.1)
        assert found.profile.header.rates == [Rate(0, PERIOD)], "this profile has begun"
        assert not is_on(target)


def test_a_thread_that_slept_through_all_generations(start: Start) -> None:
    """The next one is the one that it saw last."""
    worker = start("steps")
    with outside(worker.pid) as process:
        turn(process.target, None)
        worker.say("pairs 1 100")
        seen = int(process.running()["profile_generation"][0])
        process.write("profile_control", "generation", (seen - 1) % 256)
        turn(process.target, Settings(PERIOD))
        worker.say(f"take {BLOCKS} {BYTES}")
        assert near(process.live_bytes(CLASS_BYTES), BLOCKS * CLASS_BYTES, 0.1)


def test_only_what_came_since_the_profile_began(start: Start) -> None:
    """Not the samples that an earlier one has left, nor a row of what is older."""
    worker = start("steps")
    target = open_process(worker.pid)
    sums = []
    for _ in range(2):
        orders = iter([f"take {BLOCKS} {BYTES}"])
        plan = Plan(Mode.NEW, 0.2, Settings(PERIOD))
        found = gather(target, plan, lambda _, left=orders: [worker.say(order) for order in left])
        table = site_table(found.profile)
        sums.append(sum(site.bytes.value for site in table.sites))
        assert table.before.value == 0 and not table.is_exact
    assert all(near(one, BLOCKS * CLASS_BYTES, 0.1) for one in sums), sums
    resting = gather(target, plan)
    assert not resting.profile.samples, "no thread has seen this profile"


def test_a_profile_that_another_command_ends(start: Start) -> None:
    worker = start("steps")
    target = open_process(worker.pid)
    turn(target, Settings(PERIOD))
    found = gather(target, Plan(for_s=0.2, settings=Settings(64)), lambda _: turn(target, None) and None)
    assert re.search("another command has switched it off since", str(found.notes))
    assert re.search("--period of its own", str(found.notes))


def test_the_peak_of_a_program_that_grows_a_little(start: Start) -> None:
    """By less than 2 %: the first reading was shown, in which nothing is sampled yet."""
    worker = start("steps")
    worker.say(f"take {100 * BLOCKS // 20} {BYTES}")
    orders = chain(["pairs 1 100", "pairs 1 100", f"take {BLOCKS // 20} {BYTES}"], repeat("pairs 1 100"))
    plan = Plan(Mode.PEAK, 2.0, Settings(PERIOD))
    found = gather(open_process(worker.pid), plan, lambda _: worker.say(next(orders)) and None)
    assert near(sum(one.weight_bytes for one in found.profile.samples), BLOCKS // 20 * CLASS_BYTES, 0.3)


def test_a_census_counts_samples_as_what_they_are(start: Start) -> None:
    worker = start("steps", env={"HAKMEM_PROFILE": "64"})
    worker.say(f"take {BLOCKS} {BYTES}")
    with outside(worker.pid) as process:
        full, brief = take(process.target), take(process.target, "counters")
        assert brief.memory.live_bytes == full.memory.live_bytes
        by_class = {item.block_bytes: item.live_blocks for item in full.classes}
        assert by_class[CLASS_BYTES] == BLOCKS
        assert len(process.samples()[0]) > BLOCKS * 0.99
        worker.say("give")
        by_class = {item.block_bytes: item.live_blocks for item in take(process.target).classes}
        assert by_class[CLASS_BYTES] == 0


def test_samples_have_sites(start: Start) -> None:
    worker = start("steps", env={"HAKMEM_PROFILE": "64"})
    worker.say(f"take {BLOCKS} {BYTES}")
    with outside(worker.pid) as process:
        _, _, samples = process.samples()
        sites = process.sites()
        assert samples["site"].max() < len(sites)
        largest = sites[np.argmax(sites["allocated"]["bytes"])]
        assert near(largest["allocated"]["blocks"], BLOCKS, 0.02)
        assert 1 <= int(largest["frame_count"]) == len(process.frames(largest))
        assert set(samples["thread_id"]) == {worker.pid}


def test_a_lease_ends(start: Start) -> None:
    worker = start("threads", 2)
    with outside(worker.pid) as process:
        process.switch_and_wait(True, heaps=2, lease_s=1.0)
        off = process.target.schema.constant("profile_is_off")
        wait_for(lambda: not process.running()["armed"].any(), "the lease to end")
        assert int(process.state["status"]) == off
        process.switch_and_wait(True, heaps=2, lease_s=600.0)


def test_it_can_be_refused(start: Start) -> None:
    worker = start("steps", env={"HAKMEM_PROFILE": "never"})
    worker.say("pairs 10 100")
    with outside(worker.pid) as process:
        process.switch(True, period_bytes=64)
        worker.say(f"pairs {BLOCKS} {BYTES}")
        assert int(process.state["status"]) == process.target.schema.constant("profile_is_refused")
        assert int(process.state["samples"]) == 0
        assert not process.heaps()["armed"].any()


def test_a_child_keeps_the_table_and_goes_its_own_way(start: Start) -> None:
    worker = start("steps", env={"HAKMEM_PROFILE": str(PERIOD)})
    worker.say(f"take {BLOCKS} {BYTES}")
    with outside(worker.pid) as parent:
        before = parent.live_bytes(CLASS_BYTES)
        child_pid = int(worker.say("fork"))
        with outside(child_pid) as child:
            assert child.live_bytes(CLASS_BYTES) == before
            worker.say(f"take {BLOCKS} {BYTES}")
            assert near(child.live_bytes(CLASS_BYTES), 2 * BLOCKS * CLASS_BYTES, 0.1)
            worker.say("give")
            assert child.live_bytes(CLASS_BYTES) == 0
        assert parent.live_bytes(CLASS_BYTES) == before


def test_threads_that_end_leave_their_samples(start: Start) -> None:
    worker = start("steps", env={"HAKMEM_PROFILE": str(PERIOD)})
    for _ in range(5):
        worker.say("thread")
        worker.say(f"take {BLOCKS // 5} {BYTES}")
    with outside(worker.pid) as process:
        assert near(process.live_bytes(CLASS_BYTES), BLOCKS * CLASS_BYTES, 0.1)
        worker.say("give")
        assert process.live_bytes(CLASS_BYTES) == 0


def purge(process: Outside, number: int) -> None:
    process.write("profile_control", "purge_request", number)
    process.publish()
    process.poke(process.heap_addresses())


def test_purge_gives_back(start: Start) -> None:
    worker = start("steps", env={"HAKMEM_DECAY_MS": "86400000"})
    worker.say("take 60000 1000")
    worker.say("give")
    with outside(worker.pid) as process:
        before = int(process.record("totals")["purged_bytes"])
        purge(process, 1)
        worker.say("pairs 2 100")
        assert int(process.state["purges_done"]) == 1
        assert int(process.record("totals")["purged_bytes"]) > before + (30 << 20)
        worker.say("pairs 100 100")
        assert not process.heaps()["armed"].any()


@pytest.mark.long("2 seconds each", keep=1)
@pytest.mark.parametrize("mode", [{}, {"HAKMEM_HARDEN": "1"}, {"HAKMEM_GUARD": "1"}], ids=str)
def test_any_value_leaves_the_process_working(
    start: Start, debug_lib: Path, mode: dict[str, str], tally: Tally
) -> None:
    """Random bytes in all writable fields while threads allocate; the laws of debug builds hold."""
    writes = 3000
    random = np.random.default_rng(13)
    worker = start("threads", 4, library=debug_lib, env=mode)
    with outside(worker.pid) as process:
        control = process.target.schema.records["profile_control"]
        fields = [name for name, field in control.fields.items() if field.meta.role == "writable"]
        assert len(fields) >= 7
        for _ in range(writes):
            name = str(random.choice(fields))
            process.write(
                "profile_control", name, int(random.integers(0, 1 << 63)) >> int(random.integers(0, 63))
            )
            if random.random() < 0.1:
                process.write("profile_control", "flags", 1)
                process.publish()
                process.poke(process.heap_addresses())
        process.switch_and_wait(True, heaps=4, period_bytes=1024)
        process.switch_and_wait(False, heaps=4)
    worker.end()
    tally(writes, "writes of a profile's control record")


@pytest.mark.alone
def test_many_threads_are_switched_at_once(start: Start) -> None:
    """All that work have followed; those that sleep do when they wake."""
    threads = 500
    worker = start("sleepers", threads)
    with outside(worker.pid) as process:
        heaps = process.heap_addresses()
        began = time.perf_counter()
        process.write("profile_control", "period_bytes", PERIOD)
        process.write("profile_control", "flags", 1)
        process.publish()
        process.poke(heaps)
        taken_ms = (time.perf_counter() - began) * 1000
        assert int(process.running()["armed"].sum()) == 0
        worker.say("go")
        assert int(process.running()["armed"].sum()) == threads
        process.switch(False)
        worker.say("go")
        assert int(process.running()["armed"].sum()) <= 1  # the first thread does nothing
        print(f"{threads} threads: {taken_ms:.1f} ms to the last poke")
