"""`hakmem profile` and `hakmem purge`, as a user calls them."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from hakmem.base.errors import ExitCode
from hakmem.profile.files import load
from hakmem.profile.session import COST_PERCENT, is_on
from hakmem.target.switch import Switch
from hakmem.target.target import open_process
from results import Compile
from tool.conftest import Tool
from tool.processes import begun, running, wait_until

KEEPS, PASSES = "keeps", "passes"
PATIENCE_S = 40.0  # longer than the lease of the tool


def shares(answer: str) -> dict[str, float]:
    """The bytes of each function that a site's stack begins with; of the program's own. None in no answer."""
    found: dict[str, float] = {}
    for site in json.loads(answer)["sites"] if answer else []:
        functions = [frame["function"] for frame in site["stack"]]
        for name in (KEEPS, PASSES):
            if name in functions:
                found[name] = found.get(name, 0) + site["bytes"]
    return found


def test_live_blocks_are_of_the_site_that_keeps(tool: Tool, sites: subprocess.Popen[str]) -> None:
    ended = tool("profile", sites.pid, "--for", "2s", "--json")
    assert ended.status == 0, ended.stderr
    answer = json.loads(ended.stdout)
    held = shares(ended.stdout)
    assert held[KEEPS] > 10 * held.get(PASSES, 0)
    parts = sum(site["bytes"] for site in answer["sites"])
    whole = parts + answer["before_bytes"] + answer["unsampled_bytes"]
    assert whole == pytest.approx(answer["total_bytes"], rel=1e-6, abs=len(answer["sites"]) + 2)
    assert not is_on(open_process(sites.pid)), "it is off afterwards"


def test_allocations_are_of_both(tool: Tool, sites: subprocess.Popen[str]) -> None:
    """4 × 208 bytes pass for each 64 that are kept: 13 to 1."""
    ended = tool("profile", sites.pid, "--for", "3s", "--period", "65536", "--of", "allocated", "--json")
    held = shares(ended.stdout)
    assert 6 < held[PASSES] / held[KEEPS] < 30


def test_the_table_and_files(tool: Tool, sites: subprocess.Popen[str], tmp_path: Path) -> None:
    names = [f"p{suffix}" for suffix in (".pb.gz", ".json", ".folded", ".html")]
    options = [word for name in names for word in ("-o", tmp_path / name)]
    ended = tool("profile", sites.pid, "--for", "1s", *options)
    assert ended.status == 0, ended.stderr
    assert f"{KEEPS} (sites.c:" in ended.stdout
    assert "total" in ended.stdout
    for name in names:
        assert KEEPS in (tmp_path / name).read_text() if name != "p.pb.gz" else True
    functions = {frame.function for frames in load(tmp_path / "p.pb.gz").names.values() for frame in frames}
    assert KEEPS in functions
    unknown = tool("profile", sites.pid, "-o", tmp_path / "p.xyz")
    assert unknown.status == ExitCode.FAILED
    assert "tells no format" in unknown.stderr


@pytest.mark.long("a second of processor time")
def test_left_on_read_and_switched_off(tool: Tool, sites: subprocess.Popen[str]) -> None:
    assert "sampling is on until --off" in tool("profile", sites.pid, "--on").stdout
    wait_until(
        lambda: shares(tool("profile", sites.pid, "--of", "live", "--json").stdout).get(KEEPS), "no sample"
    )
    kept_on = tool("profile", sites.pid, "--for", "100ms")
    assert "stays on" in kept_on.stderr
    assert is_on(open_process(sites.pid))
    assert tool("profile", sites.pid, "--off").stdout == f"process {sites.pid}: sampling is off\n"
    wait_until(lambda: not is_on(open_process(sites.pid)), "it stays on")


@pytest.mark.long("3 seconds of processor time")
def test_it_ends_by_itself_when_the_tool_is_killed(sites: subprocess.Popen[str]) -> None:
    with begun("profile", sites.pid, "--for", "1h") as child:
        wait_until(lambda: is_on(open_process(sites.pid)), "it does not go on")
        child.kill()
    wait_until(lambda: not is_on(open_process(sites.pid)), "it stays on", PATIENCE_S)


@pytest.mark.long("a second of processor time")
def test_ctrl_c_ends_it_early(sites: subprocess.Popen[str]) -> None:
    with begun("profile", sites.pid, "--for", "1h") as child:
        wait_until(lambda: is_on(open_process(sites.pid)), "it does not go on")
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0
    assert "Live blocks by site" in said


def test_a_process_that_ends_in_the_middle(tool: Tool, sites_program: Path, lib: Path) -> None:
    """What was gathered so far is shown."""
    with running([sites_program, "6000"], lib) as process:
        ended = tool("profile", process.pid, "--for", "50s")
    assert ended.status == 0, ended.stderr
    assert KEEPS in ended.stdout
    assert re.search("ended(,| while it was being read)", ended.stderr)


def test_a_stopped_process(tool: Tool, sites: subprocess.Popen[str]) -> None:
    sites.send_signal(signal.SIGSTOP)
    wait_until(lambda: open_process(sites.pid).process.state == "T", "it does not stop")  # type: ignore[union-attr]
    ended = tool("profile", sites.pid, "--for", "200ms")
    assert ended.status == 0
    assert "is stopped" in ended.stderr


def test_never(tool: Tool, sites_program: Path, lib: Path) -> None:
    with running([sites_program], lib, {"HAKMEM_PROFILE": "never"}) as process:
        ended = tool("profile", process.pid)
        assert ended.status == ExitCode.FAILED
        assert "refuses heap profiles: it was started with HAKMEM_PROFILE=never" in ended.stderr


def test_what_cannot_be_profiled(tool: Tool, sites: subprocess.Popen[str], tmp_path: Path) -> None:
    assert tool("profile", os.getpid()).status == ExitCode.FAILED  # no hakmem there
    assert tool("profile", 2**22 + 1).status == ExitCode.GONE
    assert "neither a PID nor a core file" in tool("profile", tmp_path / "none").stderr
    assert "show nothing" in tool("profile", sites.pid, "--on", "--of", "live").stderr


def test_purge(tool: Tool, compiled: Compile, lib: Path) -> None:
    with running([compiled("blocks_freed")], lib, {"HAKMEM_DECAY_MS": "600000"}) as process:
        answer = tool.json("purge", process.pid)
    assert answer["done"]
    assert answer["rss_before_bytes"] - answer["rss_after_bytes"] > 50 << 20


def test_purge_of_a_stopped_process(tool: Tool, sites: subprocess.Popen[str]) -> None:
    sites.send_signal(signal.SIGSTOP)
    wait_until(lambda: open_process(sites.pid).process.state == "T", "it does not stop")  # type: ignore[union-attr]
    ended = tool("purge", sites.pid, "--for", "100ms")
    assert ended.status == ExitCode.FAILED
    assert "it is stopped" in ended.stderr


# ---- a second profile, settings that exclude each other --------------------------------------------------


def allocated_bytes(tool: Tool, pid: int, length: str) -> float:
    ended = tool("profile", pid, "--for", length, "--of", "allocated", "--json")
    assert ended.status == 0, ended.stderr
    return float(json.loads(ended.stdout)["total_bytes"])


@pytest.mark.long("a second of processor time")
def test_allocated_counts_from_its_own_beginning(tool: Tool, sites: subprocess.Popen[str]) -> None:
    """The sampler's sums go on; the second profile is a twentieth as long as the first."""
    first = allocated_bytes(tool, sites.pid, "4s")
    assert allocated_bytes(tool, sites.pid, "200ms") < first


def test_a_process_that_does_nothing(tool: Tool, lib: Path) -> None:
    """No thread has seen the profile: it has no length, not one since 1970."""
    with running(["/bin/sh", "-c", "echo ready; exec sleep 600"], lib) as process:
        ended = tool("profile", process.pid, "--for", "100ms")
    assert ended.status == 0, ended.stderr
    assert not re.search(r"\d h ", ended.stdout), ended.stdout


def asked_percent(pid: int) -> int:
    """What the sampler was asked to take at most."""
    with Switch(open_process(pid)) as switch:
        return int(switch._record()["cost_percent"])


def test_the_cost_is_that_of_a_command_that_somebody_waits_for(
    tool: Tool, sites: subprocess.Popen[str]
) -> None:
    """At 0.5 %, the library's own, ten seconds brought three samples."""
    tool("profile", sites.pid, "--for", "200ms")
    assert asked_percent(sites.pid) == COST_PERCENT == 5
    tool("profile", sites.pid, "--for", "200ms", "--period", "7%")
    assert asked_percent(sites.pid) == 7
    tool("profile", sites.pid, "--on")
    assert asked_percent(sites.pid) == 0, "left on, it takes the library's 0.5 %"
    tool("profile", sites.pid, "--off")
    tool("profile", sites.pid, "--on", "--period", "3%")
    assert asked_percent(sites.pid) == 3


def test_off_takes_no_settings(tool: Tool, sites: subprocess.Popen[str]) -> None:
    ended = tool("profile", sites.pid, "--off", "--for", "3s")
    assert ended.status == ExitCode.USAGE
    assert "--off ends a profile" in ended.stderr


@pytest.mark.long("a second; samples for three")
def test_wide_intervals_are_told(tool: Tool, sites: subprocess.Popen[str]) -> None:
    """With one sample in 64 MiB there are a few; with one in 4 KiB there are thousands."""
    wide = tool("profile", sites.pid, "--for", "1s", "--period", str(1 << 26), "--of", "allocated")
    count = int(wide.stdout.splitlines()[1].split()[0].replace(",", ""))
    # A site that has all of six samples has more than half of the bytes.
    assert ("Too few samples" in wide.stdout) or count == 0 or count >= 6, wide.stdout
    assert "exact" not in wide.stdout
    narrow = tool("profile", sites.pid, "--for", "2s", "--period", "4096", "--of", "allocated")
    assert "Too few samples" not in narrow.stdout


# ---- frees of sampled blocks: by their own and by other threads, of all sizes ----------------------------


@pytest.mark.long("2 seconds each")
@pytest.mark.parametrize("build", ["lib", "debug_lib"])
def test_frees_of_sampled_blocks(
    tool: Tool, compiled: Compile, build: str, request: pytest.FixtureRequest
) -> None:
    """No free takes a sample's slab for a Large range, to file it in a magazine that is none."""
    library = request.getfixturevalue(build)
    with running([compiled("frees_of_all_kinds", "-pthread")], library) as process:
        ended = tool("profile", process.pid, "--for", "2s", "--period", "4096", "--of", "allocated", "--json")
        assert ended.status == 0, ended.stderr
        assert "ended while" not in ended.stderr
        assert tool("profile", process.pid, "--for", "200ms").status == 0
        assert process.poll() is None, process.returncode
    assert json.loads(ended.stdout)["sites"]
