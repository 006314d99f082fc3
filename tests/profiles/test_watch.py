"""A profile that is read again and again: samples that are alike are one, names are looked up once."""

import os
import signal
import subprocess
import threading
from unittest.mock import Mock

import numpy as np
import pytest
from hakmem.census import reading
from hakmem.census.snapshot import take
from hakmem.profile import watch as watch_module
from hakmem.profile.estimate import probabilities, probability
from hakmem.profile.live import read_profile, read_start
from hakmem.profile.model import Frame, Mapping, Profile, Sample
from hakmem.profile.sites import site_table
from hakmem.profile.watch import Names, SiteWatch
from hakmem.target.process import Process
from hakmem.target.switch import Settings, Switch
from hakmem.target.target import Target, open_process
from tool.processes import runs, wait_until

SAMPLES_OF_EACH = 500


sites = runs("sites.c", flags=["-g"], scope="function", HAKMEM_PROFILE="1")  # from its first malloc on


def test_probabilities_are_those_of_single_blocks() -> None:
    sizes, rates = np.array([1.0, 64, 4096, 1 << 20, 1e12, 64, 64]), np.array([1e6, 4096, 4096, 1, 512, 0, 1])
    expected = [probability(*pair) for pair in zip(sizes.tolist(), rates.tolist(), strict=True)]
    assert probabilities(sizes, rates).tolist() == pytest.approx(expected, rel=1e-12)


def samples_of(target: Target) -> int:
    return len(read_profile(target, with_counts=False).samples)


def test_merged_samples_have_the_same_sums(sites: subprocess.Popen[str]) -> None:
    """Bytes and blocks to rounding errors, intervals to 2 %."""
    target = open_process(sites.pid)
    with Switch(target) as switch:
        for number, period_bytes in enumerate((4096, 5000, 40_000), 1):
            switch.on(Settings(period_bytes))
            wanted = number * SAMPLES_OF_EACH
            wait_until(lambda: samples_of(target) > wanted, "too few samples", 60.0)  # noqa: B023
    sites.send_signal(signal.SIGSTOP)
    wait_until(lambda: target.process is not None and target.process.state == "T", "it does not stop")
    single = read_profile(target, with_counts=False)
    merged = read_profile(target, with_counts=False, is_merged=True)
    assert len(merged.samples) < len(single.samples) / 4
    assert sum(one.samples for one in merged.samples) == len(single.samples)
    before, after = ({site.key: site for site in site_table(one).sites} for one in (single, merged))
    assert before.keys() == after.keys()
    for key, site in before.items():
        other = after[key]
        assert other.bytes.value == pytest.approx(site.bytes.value, rel=1e-9)
        assert other.blocks.value == pytest.approx(site.blocks.value, rel=1e-9)
        assert other.bytes.error == pytest.approx(site.bytes.error, rel=0.02)
        assert other.bytes.samples == site.bytes.samples
        assert other.is_complete == site.is_complete


def test_heaps_are_read_once(sites: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """And not at all where there is a snapshot."""
    target = open_process(sites.pid)
    snapshot = take(target)
    read = Mock(side_effect=reading.read_heaps)
    monkeypatch.setattr(reading, "read_heaps", read)
    start = read_start(target)
    assert read.call_count == 1
    assert read_profile(target, start=start).classes
    assert read.call_count == 2
    profile = SiteWatch(target).read(snapshot)
    assert read.call_count == 2
    assert site_table(profile).total_bytes > 0  # the program goes on between the two readings


def test_a_watch_that_nothing_was_asked_of_leaves_no_thread(sites: subprocess.Popen[str]) -> None:
    before = threading.active_count()
    with SiteWatch(open_process(sites.pid)) as watch:
        watch.switch_on()
        assert not watch.is_ours, "it was on"
        assert threading.active_count() == before


# ---- names ----------------------------------------------------------------------------------------------


class World:
    """What naming is asked for, and what it knows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, names: dict[int, str]) -> None:
        self.asked: list[set[int]] = []
        self.names = names
        self.now_s = 1000.0
        monkeypatch.setattr(watch_module, "name_addresses", self.name)
        monkeypatch.setattr(watch_module.Sources, "of_process", lambda *_, **__: None)
        monkeypatch.setattr(watch_module.time, "monotonic", lambda: self.now_s)

    def name(self, profile: Profile, _sources: object) -> None:
        self.asked.append(profile.addresses())
        for address in profile.addresses() & self.names.keys():
            profile.names[address] = (Frame(self.names[address]),)


def profile_at(*stacks: tuple[int, ...]) -> Profile:
    samples = [Sample(stack, 1, 64, 64, 64.0, 1.0) for stack in stacks]
    return Profile(mappings=[Mapping(0x1000, 0x2000, 0, "/opt/prog", "ab"), Mapping(0x8000, 0x9000, 0, "")],
                   samples=samples)  # fmt: skip


def names_of_this_process() -> Names:
    return Names(Process(os.getpid()))


def test_an_address_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one without a name, of a file: it does not get one."""
    world, names = World(monkeypatch, {0x1010: "parse"}), names_of_this_process()
    for stacks in ([(0x1010, 0x1020)], [(0x1010, 0x1020)], [(0x1020,), (0x1030,)]):
        profile = profile_at(*stacks)
        names.use(profile)
        names.find(profile)
    assert world.asked == [{0x1010, 0x1020}, {0x1030}]
    assert profile.names[0x1010] == (Frame("parse"),)
    assert not names.missing(profile)


def test_code_of_a_jit_compiler_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world, names = World(monkeypatch, {}), names_of_this_process()
    profile = profile_at((0x8010,))
    names.use(profile)
    names.find(profile)
    names.find(profile)
    assert len(world.asked) == 1
    world.names[0x8010] = "jitted"
    world.now_s += watch_module.UNNAMED_FOR_S + 1
    names.find(profile)
    assert profile.names[0x8010] == (Frame("jitted"),)


def test_names_of_a_file_that_was_unmapped_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another may lie there now."""
    _, names = World(monkeypatch, {0x1010: "old"}), names_of_this_process()
    profile = profile_at((0x1010,))
    names.use(profile)
    names.find(profile)
    profile.mappings = [Mapping(0x1000, 0x2000, 0, "/opt/other", "cd")]
    names.use(profile)
    assert names.missing(profile) == {0x1010}


def test_one_thread_looks_up_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    names, go_on, begun = names_of_this_process(), threading.Event(), threading.Event()
    calls: list[int] = []

    def slow(profile: Profile, _sources: object) -> None:
        calls.append(1)
        begun.set()
        assert go_on.wait(60)
        profile.names.update({address: (Frame("f"),) for address in profile.addresses()})

    monkeypatch.setattr(watch_module, "name_addresses", slow)
    profile = profile_at((0x1010,))
    names.use(profile)
    names.find_soon(profile)
    assert begun.wait(60)
    names.find_soon(profile)
    assert names.is_busy
    assert len(calls) == 1
    go_on.set()
    wait_until(lambda: not names.is_busy, "it never ends")
    assert profile.names[0x1010] == (Frame("f"),)


def test_what_cannot_be_named_stays_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "name_addresses", Mock(side_effect=OSError(5, "Input/output error")))
    names, profile = names_of_this_process(), profile_at((0x1010,))
    names.use(profile)
    names.find(profile)
    assert not names.missing(profile)
