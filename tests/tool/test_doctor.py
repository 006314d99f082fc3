"""hakmem doctor: the machine, its limits, and what they mean."""

import json
import resource
from collections.abc import Mapping
from pathlib import Path

import pytest
from hakmem.doctor import checks
from hakmem.doctor.findings import memory_limit
from hakmem.target.cgroup import cgroup_limits
from results import captured
from tool.conftest import Tool

NAMES = {
    "kernel", "page size", "transparent huge pages", "overcommit", "map count", "memory", "swap",
    "memory limit", "CPU quota", "address space limit", "data limit", "locked memory limit", "stack limit",
    "access", "environment", "library", "options",
}  # fmt: skip


def test_every_finding_has_a_verdict_and_every_bad_one_an_advice(tool: Tool) -> None:
    ended = tool("doctor", "--json")
    report = json.loads(ended.stdout)
    assert {finding["name"] for finding in report["findings"]} == NAMES
    for finding in report["findings"]:
        assert finding["found"]
        assert finding["verdict"] == "ok" or finding["advice"], finding
    problems = sum(finding["verdict"] == "problem" for finding in report["findings"])
    assert report["problems"] == problems
    assert ended.status == (1 if problems else 0)


def test_it_fits_the_terminal(tool: Tool) -> None:
    lines = tool("doctor", COLUMNS="60").stdout.splitlines()
    assert max(map(len, lines)) <= 60
    assert "problems" in lines[-1]


def test_limits_of_this_session(tool: Tool) -> None:
    limits = {"RLIMIT_AS": 8 << 30, "RLIMIT_DATA": 4 << 30}

    def limit() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, name), (value, value))

    words = [str(tool.path), "doctor", "--json"]
    step = captured(words, preexec_fn=limit)
    found = {finding["name"]: finding for finding in json.loads(step.stdout)["findings"]}
    assert found["address space limit"]["verdict"] == found["data limit"]["verdict"] == "advice"
    assert (found["address space limit"]["found"], found["data limit"]["found"]) == ("8.00 GiB", "4.00 GiB")


def test_a_library_that_does_not_load_is_a_problem(tool: Tool, tmp_path: Path) -> None:
    broken = tmp_path / "libhakmem.so"
    broken.write_bytes(b"\x7fELF and no more")
    ended = tool("doctor", "--json", HAKMEM_LIBRARY=str(broken))
    assert ended.status == 1
    (found,) = (f for f in json.loads(ended.stdout)["findings"] if f["name"] == "library")
    assert found["verdict"] == "problem"
    assert "does not load" in found["found"]


def test_other_mallocs_that_are_preloaded(tool: Tool) -> None:
    ended = tool("doctor", "--json", LD_PRELOAD="libjemalloc.so.2")
    found = {finding["name"]: finding for finding in json.loads(ended.stdout)["findings"]}
    assert found["environment"]["verdict"] == "problem"
    assert "libjemalloc.so.2" in found["environment"]["found"]


# ---- settings that this machine has not: files as such a kernel shows them ---------------------------------


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [("[always] madvise never", "ok"), ("always [madvise] never", "ok"), ("always madvise [never]", "ok")],
)
def test_huge_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, verdict: str) -> None:
    write(tmp_path, {"enabled": mode})
    monkeypatch.setattr(checks, "THP", tmp_path)
    assert checks.check_huge_pages().verdict == verdict


def test_strict_overcommit_and_few_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"overcommit_memory": "2\n", "max_map_count": "20\n"})
    monkeypatch.setattr(checks, "VM", tmp_path)
    assert "strict" in checks.check_overcommit().found
    count = checks.check_map_count()
    assert (count.verdict, "max_map_count=80" in count.advice) == ("problem", True)


V2 = {
    "cgroup.controllers": "cpu memory",
    "a/memory.max": "1073741824\n",
    "a/memory.current": "1000\n",
    "a/memory.events": "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\n",
    "a/cpu.max": "max 100000\n",
    "a/b/memory.max": "max\n",
    "a/b/memory.high": "max\n",
    "a/b/cpu.max": "50000 100000\n",
}
V1 = {
    "memory/a/memory.limit_in_bytes": "536870912\n",
    "memory/a/memory.usage_in_bytes": "500000000\n",
    "memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
    "memory/memory.limit_in_bytes": "9223372036854771712\n",
    "cpu/a/cpu.cfs_quota_us": "150000\n",
    "cpu/a/cpu.cfs_period_us": "100000\n",
    "cpu/cpu.cfs_quota_us": "-1\n",
}


def test_cgroup_v2_takes_the_tightest_limit(tmp_path: Path) -> None:
    write(tmp_path, V2 | {"membership": "0::/a/b\n"})
    limits = cgroup_limits(tmp_path, tmp_path / "membership")
    assert (limits.kind, limits.memory_bytes, limits.used_bytes) == ("cgroup v2", 1 << 30, 1000)
    assert (limits.oom_kills, limits.cpus) == (2, 0.5)
    assert limits.memory_setting.endswith("/a/memory.max")


def test_cgroup_v1(tmp_path: Path) -> None:
    write(tmp_path, V1 | {"membership": "4:memory:/a\n1:cpu,cpuacct:/a\n0::/\n"})
    limits = cgroup_limits(tmp_path, tmp_path / "membership")
    assert (limits.kind, limits.memory_bytes, limits.used_bytes) == ("cgroup v1", 1 << 29, 500_000_000)
    assert (limits.oom_kills, limits.cpus) == (0, 1.5)


def test_inside_a_container_only_the_root_is_seen(tmp_path: Path) -> None:
    files = {"cgroup.controllers": "memory", "memory.max": "1000000", "memory.current": "999999"}
    write(tmp_path, files | {"membership": "0::/docker/0123\n"})
    assert cgroup_limits(tmp_path, tmp_path / "membership").memory_bytes == 1_000_000


def test_a_full_limit_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, V1 | {"membership": "4:memory:/a\n"})
    limits = cgroup_limits(tmp_path, tmp_path / "membership")
    found = memory_limit(limits)
    assert found.verdict == "problem"
    assert "memory.limit_in_bytes" in found.advice
