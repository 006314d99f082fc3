"""hakmem leaks: a site that leaks 64 KiB/s is named, and those that only look as if they did are not."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hakmem.base.errors import ExitCode
from hakmem.blocks import growing
from hakmem.blocks.conclusion import rate_text
from hakmem.blocks.evidence import SAMPLES_SEEN
from hakmem.blocks.growing import Watch, Watched, watch
from hakmem.blocks.leaks import Options, Verdict, found_leaks, stayed_samples
from hakmem.blocks.scanning import Scanning
from hakmem.profile.live import read_profile
from hakmem.profile.model import Profile
from hakmem.profile.session import READING_EVERY_S, is_on
from hakmem.target.switch import Settings, Switch
from hakmem.target.target import Target, open_process
from results import Compile
from tool.conftest import Tool
from tool.dumps import dumped, needs_gcore
from tool.processes import begun, running, wait_until

RATE = 64 << 10
PATIENCE_S = 60.0  # so soon a leak has to be named
# With R as it adapts a loaded machine gives fewer samples; with a given one the test knows how many come.
WATCH = ("--for", "12s", "--period", "8192", "--wait", "100ms")
BLIND_BYTES, BLIND_S = 1 << 30, 8  # the bytes a sample: a leak has none
BLIND = ("--for", f"{BLIND_S}s", "--period", BLIND_BYTES, "--wait", "100ms", "--json")


LOSE_IN_PYTHON = """
import ctypes, json, time
take = ctypes.pythonapi.Py_IncRef
take.argtypes = [ctypes.py_object]
RATE, SIZE, TRAFFIC = 65536, 3000, 50

def lose():
    lost = bytes(SIZE)
    take(lost)

def answer():
    return json.dumps({"a": "x" * 900})

print("ready", flush=True)
began_s, done = time.monotonic(), 0
while True:
    while done < (time.monotonic() - began_s) * RATE:
        lose()
        for _ in range(TRAFFIC * SIZE // 1000):
            answer()
        done += SIZE
    time.sleep(0.001)
"""


@pytest.fixture(scope="module")
def leaky_program(compile_c: Compile) -> Path:
    return compile_c(Path(__file__).parent / "programs" / "leaky.c", "-fno-omit-frame-pointer")


@pytest.fixture
def leaky(leaky_program: Path, lib: Path) -> Iterator[subprocess.Popen[str]]:
    with running([leaky_program], lib) as process:
        yield process


def functions(site: dict[str, Any]) -> list[str]:
    return [frame["function"] for frame in site["stack"]]


def site_of(answer: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (site for site in answer["sites"] if functions(site)[:1] == [name])
    return found


def keeping(answer: dict[str, Any]) -> list[str]:
    return [functions(site)[0] for site in answer["sites"] if site["keeps"]]


def leaks(tool: Tool, *words: object) -> Any:  # noqa: ANN401 - what it printed
    ended = tool("leaks", *map(str, words), "--json")
    assert ended.status == 0, ended.stderr
    return json.loads(ended.stdout)


def assert_lost_at_rate(answer: dict[str, Any], growth: dict[str, Any]) -> None:
    """By what was counted: a busy machine's program makes up in the watch for what was due before it."""
    counted = answer["growth"]["live_bytes"]
    assert counted / answer["growth"]["seconds"] == pytest.approx(RATE, rel=0.5)
    assert growth["bytes_low"] <= counted * 1.1
    assert growth["bytes_high"] >= counted * 0.9


@pytest.fixture(scope="module")
def watched(tool: Tool, leaky_program: Path, lib: Path) -> dict[str, str]:
    """Answers about several processes, watched at once: a watcher mostly sleeps."""
    hardened = {"HAKMEM_HARDEN": "1"}
    programs: dict[str, tuple[list[str | Path], dict[str, str]]] = {
        "lost": ([leaky_program], {}),
        "collected": ([leaky_program, "collect"], {}),
        "hardened": ([leaky_program], hardened),
        "python": (["/usr/bin/python3", "-c", LOSE_IN_PYTHON], {}),
        "text": ([leaky_program], {}),
        "blind": ([leaky_program], {}),
    }
    words = {"text": WATCH, "blind": BLIND}

    def watch(name: str, process: subprocess.Popen[str]) -> str:
        ended = tool("leaks", process.pid, *words.get(name, (*WATCH, "--json")))
        assert ended.status == 0, ended.stderr
        return ended.stdout

    with ExitStack() as stack, ThreadPoolExecutor(len(programs)) as pool:
        started = {
            name: stack.enter_context(running(words, lib, variables))
            for name, (words, variables) in programs.items()
        }
        said = dict(zip(started, pool.map(watch, started, started.values()), strict=True))
        assert not any(is_on(open_process(process.pid)) for process in started.values()), "off afterwards"
    return said


@pytest.fixture(scope="module")
def answer(watched: dict[str, str]) -> Any:  # noqa: ANN401
    return json.loads(watched["lost"])


@pytest.mark.long("7 seconds of processor time")
def test_what_is_lost_is_named(watched: dict[str, str], answer: Any) -> None:  # noqa: ANN401
    """Amid fifty times the traffic, and sessions that seem to grow because they replace older ones."""
    assert keeping(answer) == ["leak"], answer["verdict"]
    site = site_of(answer, "leak")
    growth, survival, lost = site["growth"], site["survival"], site["unreachable"]
    assert_lost_at_rate(answer, growth)
    assert growth["is_certain"]
    assert survival["none_freed_after_seconds"] == 0
    assert lost["share"] > 0.8
    assert lost["low"] > 0.5
    assert answer["verdict"].startswith("leak (leaky.c:")
    assert re.search(r" leaks [\d.]+ KiB/s \(320-byte blocks.*\); none of its", answer["verdict"])
    assert answer["verdict"].count("unreachable") == 1
    is_settled = "changes faster than it can be scanned" not in watched["lost"]  # it may be on a busy machine
    assert answer["definite" if is_settled else "perhaps"]["blocks"] > 100


def test_sessions_that_replace_older_ones_are_not_named(answer: Any) -> None:  # noqa: ANN401
    growth = site_of(answer, "session")["growth"]
    assert growth["is_significant"], "new sessions are seen, and old ones have no site"
    assert not growth["is_certain"]
    freed = site_of(answer, "answer")["survival"]
    assert freed["freed_samples"] > 1000
    assert freed["points"][-1]["share"] < 0.01


def test_a_collection_that_only_grows(watched: dict[str, str]) -> None:
    """It is a leak to its users, though the program knows each block."""
    answer = json.loads(watched["collected"])
    assert keeping(answer) == ["collect"]
    assert "the program still reaches all of them" in answer["verdict"]
    assert re.match(r"collect \(leaky.c:\d+\) grows by [\d.]+ KiB/s", answer["verdict"])
    assert answer["definite"]["blocks"] == 0


def test_in_hardened_mode(watched: dict[str, str]) -> None:
    """Blocks have trailers there, and are in larger classes for it."""
    answer = json.loads(watched["hardened"])
    assert keeping(answer) == ["leak"], answer["verdict"]
    assert site_of(answer, "leak")["growth"]["is_certain"]
    assert not site_of(answer, "session")["growth"]["is_certain"]


def test_growth_that_no_sample_shows(watched: dict[str, str]) -> None:
    """It is counted exactly; the answer says what may be missing, and what to do."""
    answer = json.loads(watched["blind"])
    verdict = answer["verdict"]
    assert verdict.startswith("Size classes grew by"), verdict
    seen = answer["growth"]["visible_bytes_per_second"]
    assert seen == pytest.approx(SAMPLES_SEEN * BLIND_BYTES / BLIND_S, rel=0.1)
    assert f"less than {rate_text(seen)} may not be seen" in verdict
    assert answer["next_command"] == f"hakmem leaks {answer['pid']} --for 60m --period 20%"
    assert verdict.endswith(f"Next: {answer['next_command']}")


def test_what_sampling_cost_is_told(watched: dict[str, str]) -> None:
    spent = json.loads(watched["lost"])["spent"]
    assert spent["samples"] > 0
    assert 0 < spent["sampling_s"] < spent["cpu_s"]
    assert re.search(r"sampling took .* of .* of processor time", " ".join(watched["text"].split()))


def test_it_watches_until_it_is_known_whose_growth_it_is(
    leaky: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = open_process(leaky.pid)
    monkeypatch.setattr(growing, "FOR_S", 0.2)
    asked: list[Watched] = []

    def is_told(watched: Watched) -> bool:
        asked.append(watched)
        return len(asked) == 3

    watched = watch(target, Watch(is_told=is_told))
    assert len(asked) == 3
    assert all(one.after is not None and one.after.classes for one in asked)
    assert watched.after is not None
    assert watched.after.header.seconds >= 0.5
    assert watched.period_bytes > 0
    monkeypatch.setattr(growing, "LONGEST_S", 0.3)
    asked.clear()
    watch(target, Watch(is_told=lambda one: bool(asked.append(one))))
    assert len(asked) <= 2, "not for ever"
    watch(target, Watch(0.1, is_told=lambda one: bool(asked.append(one))))
    assert len(asked) <= 2, "--for is kept to"


def test_a_given_share_of_processor_time_is_not_left_behind(tool: Tool, leaky: subprocess.Popen[str]) -> None:
    """It is this command's, not the next profile's.  Without one it is 5 %."""
    watch(open_process(leaky.pid), Watch(0.1))
    with Switch(open_process(leaky.pid)) as switch:
        assert switch._record()["cost_percent"] == 5
    leaks(tool, leaky.pid, "--for", "200ms", "--period", "50%", "--wait", "50ms")
    with Switch(open_process(leaky.pid)) as switch:
        assert switch._record()["cost_percent"] == 50
        switch.on(Settings(lease_s=10))
        assert switch._record()["cost_percent"] == 0
        switch.off()


def test_as_text(watched: dict[str, str]) -> None:
    verdict, rest = watched["text"].split("\n\n", 2)[1:]
    assert re.match(
        r"leak \(leaky.c:\d+\) (leaks|grows by) [\d.]+ KiB/s \(320-byte", " ".join(verdict.split())
    )
    for words in ("Growth by site", "for certain", "Blocks that live longer than", "Unreachable blocks"):
        assert words in rest, words
    assert "may not be seen" in " ".join(rest.split())


@pytest.mark.long("27 seconds; test_what_is_lost_is_named watches this program")
def test_a_leak_of_64_kib_a_second_is_named_within_a_minute(tool: Tool, leaky: subprocess.Popen[str]) -> None:
    """By a profile that is on, as its R adapts, read as it is; it stays on."""
    assert tool("profile", leaky.pid, "--on").status == 0

    def names_it() -> Any:  # noqa: ANN401
        answer = leaks(tool, leaky.pid, "--for", "0s", "--wait", "50ms")
        return answer if "leak" in keeping(answer) else None

    answer = wait_until(names_it, "it is not named", PATIENCE_S)
    assert answer["growth"]["live_bytes"] is None
    assert any("--for tells them apart" in note for note in answer["notes"])
    assert is_on(open_process(leaky.pid))

    # Blocks that are live in both readings do not count.  The period stays as it has adapted: on a slow
    # machine samples are few, and the growth may not be seen to be steady at once.
    def names_it_alone() -> Any:  # noqa: ANN401
        answer = leaks(tool, leaky.pid, *WATCH)
        assert set(keeping(answer)) <= {"leak"}
        return answer if keeping(answer) else None

    answer = wait_until(names_it_alone, "it is not named", PATIENCE_S)
    assert answer["growth"]["live_bytes"] is not None
    assert is_on(open_process(leaky.pid)), "it stays on"
    assert any("stays on" in note for note in answer["notes"])


@pytest.mark.long("a second of processor time")
@needs_gcore
def test_a_core(tool: Tool, leaky: subprocess.Popen[str], tmp_path: Path) -> None:
    assert tool("profile", leaky.pid, "--on").status == 0

    def named() -> Any:  # noqa: ANN401
        """One reading may take another site for the one that keeps, while there are few samples."""
        answer = leaks(tool, dumped(leaky.pid, tmp_path))
        if "leak" not in keeping(answer) or answer["growth"]["seconds"] < 0.5:  # by its youngest sample
            return None
        return answer if site_of(answer, "leak")["survival"]["oldest_seconds"] > 0.3 else None

    answer = wait_until(named, "it is not named", PATIENCE_S)
    assert "are unreachable" in answer["verdict"]


def test_only_what_nothing_reaches(tool: Tool, leaky: subprocess.Popen[str]) -> None:
    """Nothing is written into the process."""
    answer = leaks(tool, leaky.pid, "--for", "0s", "--freeze")
    assert answer["growth"] is None
    assert answer["sites"] == []
    assert "definitely lost" in answer["verdict"]
    assert any("no profile is on" in note for note in answer["notes"])
    assert not open_process(leaky.pid).memory.array(
        open_process(leaky.pid).schema.root("profile_state"),
        open_process(leaky.pid).schema.dtype("profile_state"),
        1,
    )["sessions"][0]


def test_check_sets_the_exit_status(tool: Tool, leaky: subprocess.Popen[str], lib: Path) -> None:
    """For scripts: it ended with 0, whatever was lost."""
    found = ("--for", "0s", "--freeze")
    assert tool("leaks", leaky.pid, *found).status == 0
    failed = tool("leaks", leaky.pid, *found, "--check")
    assert failed.status == ExitCode.FAILED
    assert "definitely lost" in failed.stdout
    with running(["/bin/sh", "-c", "echo ready; exec sleep 600"], lib) as process:
        assert tool("leaks", process.pid, *found, "--check").status == 0


@pytest.mark.long("a second of processor time")
def test_a_sample_is_its_block_only_as_long_as_it_lives(leaky: subprocess.Popen[str]) -> None:
    """Another one at its address, with the same content, would seem to be lost in its place."""
    target = open_process(leaky.pid)
    with Switch(target) as switch:
        switch.on(Settings(period_bytes=512, lease_s=20))
        profile = wait_until(lambda: with_samples(target, 1000), "no samples")
        switch.off()
    options = Options(samples=profile.blocks, births_ns=profile.births_ns)
    assert stayed_samples(target, options).mean() > 0.1, "leak's, and sessions"
    later = replace(options, births_ns=[birth + 1 for birth in profile.births_ns])
    assert not stayed_samples(target, later).any()
    # Whatever the scans say of the block that is there now.
    scan = Scanning(target).run()
    everything = replace(scan, unreachable=np.flatnonzero(scan.marking.is_live))
    verdict = Verdict(everything, everything.unreachable, [], 0, 0, 0, is_settled=True)
    assert found_leaks(target, options, verdict).lost_samples.mean() > 0.1
    assert not found_leaks(target, later, verdict).lost_samples.any()


def with_samples(target: Target, count: int) -> Profile | None:
    profile = read_profile(target, with_counts=False)
    return profile if len(profile.samples) >= count else None


def test_a_process_that_refuses_profiles(tool: Tool, leaky_program: Path, lib: Path) -> None:
    """All that can be known is reported."""
    with running([leaky_program], lib, {"HAKMEM_PROFILE": "never"}) as process:
        answer = leaks(tool, process.pid, "--for", "1s", "--freeze")
    assert answer["growth"] is None
    assert any("HAKMEM_PROFILE=never" in note for note in answer["notes"])
    assert answer["live"]["blocks"] > 0


def test_a_process_that_does_nothing(tool: Tool, lib: Path) -> None:
    with running(["/bin/sh", "-c", "echo ready; exec sleep 600"], lib) as process:
        answer = leaks(tool, process.pid, "--for", "100ms", "--wait", "50ms")
    assert keeping(answer) == []
    assert "Nothing is definitely lost." in answer["verdict"]


@pytest.mark.long("3 seconds of processor time")
def test_a_process_that_ends_while_it_is_watched(tool: Tool, leaky: subprocess.Popen[str]) -> None:
    """The figures so far are reported."""
    with begun("leaks", leaky.pid, "--for", "1h", "--json") as child:
        wait_until(lambda: is_on(open_process(leaky.pid)), "it does not go on")
        wait_until(
            lambda: "leak" in keeping(leaks(tool, leaky.pid, "--for", "0s", "--wait", "50ms")),
            "it is not named",
            PATIENCE_S,
        )
        time.sleep(3 * READING_EVERY_S)  # the watching command reads at its own times
        leaky.kill()
        said, _ = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0
    answer = json.loads(said)
    assert answer["sites"]
    assert "definite" not in answer
    assert any("ended" in note for note in answer["notes"])


@pytest.mark.long("a second of processor time")
def test_ctrl_c_ends_the_watch_early(leaky: subprocess.Popen[str]) -> None:
    with begun("leaks", leaky.pid, "--for", "1h", "--wait", "50ms", "--json") as child:
        wait_until(lambda: is_on(open_process(leaky.pid)), "it does not go on")
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0
    assert "definite" in json.loads(said)


def test_wrong_words(tool: Tool, leaky: subprocess.Popen[str]) -> None:
    for words, said in (
        (("--for", "0s", "--period", "3%"), "leave out --period"),
        (("--period", "0"), "at least 1 B"),
        (("--period", "101%"), "from 1% to 100%"),
    ):
        ended = tool("leaks", leaky.pid, *words)
        assert ended.status == ExitCode.USAGE, words
        assert said in " ".join(ended.stderr.split()), words


def test_a_leak_in_cpython_is_named(watched: dict[str, str]) -> None:
    """By its function in C: a reference too many, as faulty extensions take them."""
    answer = json.loads(watched["python"])
    (site,) = (site for site in answer["sites"] if site["keeps"])
    growth = site["growth"]
    assert_lost_at_rate(answer, growth)
    assert site["unreachable"]["share"] > 0.8
    assert site["content"] == "Python object: bytes"
    assert "-byte blocks holding Python object: bytes)" in answer["verdict"]
    (row,) = (row for row in answer["contents"] if row["name"] == "bytes")
    assert row["bytes_share"]["share"] > 0.9
