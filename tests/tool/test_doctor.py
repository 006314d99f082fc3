"""hakmem doctor: the machine, its limits, its variables, a process, and what they mean."""

import json
import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hakmem.doctor import checks, option_checks, process_checks
from hakmem.doctor.findings import memory_limit
from hakmem.doctor.runtimes import runtime_of
from hakmem.target.cgroup import cgroup_limits
from results import Compile, captured
from tool.conftest import StartOnHakmem, Tool
from tool.processes import PROGRAMS, running, wait_until

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


@pytest.mark.parametrize(
    ("text", "said"), [(None, "No such file"), ("#!/bin/sh\nexec sleep 60\n", "timed out")]
)
def test_a_library_that_cannot_be_tried(
    lib: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, said: str
) -> None:
    """Without /bin/true, or on a machine that is too busy."""
    program = tmp_path / "true"
    if text is not None:
        program.write_text(text)
        program.chmod(0o755)
    monkeypatch.setenv("HAKMEM_LIBRARY", str(lib))
    monkeypatch.setattr(option_checks, "PROGRAM", str(program))
    monkeypatch.setattr(option_checks, "TIMEOUT_S", 0.05)
    found = checks.check_library()
    assert (found.name, found.verdict) == ("library", "advice")
    assert "is not checked" in found.found
    assert said in found.found


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


# ---- HAKMEM_* variables, languages' own allocators, another process --------------------------------------


Findings = dict[str, list[dict[str, Any]]]


def findings(tool: Tool, *words: str | int, **variables: str) -> Findings:
    """By name; the status is that of the worst."""
    ended = tool("doctor", "--json", *words, **variables)
    report = json.loads(ended.stdout)
    assert ended.status == (1 if report["problems"] else 0)
    named: Findings = {}
    for item in report["findings"]:
        assert item["verdict"] == "ok" or item["advice"], item
        named.setdefault(item["name"], []).append(item)
    return named


# ---- the environment --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value", "verdict", "found", "advice"),
    [
        (
            "HAKMEM_DECAYMS",
            "3",
            "problem",
            "HAKMEM_DECAYMS is not an option",
            "did you mean HAKMEM_DECAY_MS?",
        ),
        ("HAKMEM_HARDENED", "1", "problem", "not an option", "did you mean HAKMEM_HARDEN?"),
        ("HAKMEM_XYZZY", "1", "problem", "not an option", "HAKMEM_HELP=1 lists"),
        ("HAKMEM_HARDEN", "7", "problem", "a whole number from 0 to 2", "no effect"),
        ("HAKMEM_DECAY_MS", "fast", "problem", "a whole number from 0 to 86400000", "no effect"),
        ("HAKMEM_ON_MISUSE", "shrug", "problem", "abort, warn or ignore", "no effect"),
        ("HAKMEM_LIMIT_HARD", "500q", "problem", "is not a size (500M, 500MiB", "no effect"),
        ("HAKMEM_LIMIT_HARD", "0", "problem", "zero", "no effect"),
        ("HAKMEM_LIMIT_SOFT", "900T", "advice", "exceeds the", "the tighter limit decides"),
        ("HAKMEM_STATS", "tekst", "problem", "1, json, text:FILE or json:FILE", "no effect"),
        ("HAKMEM_STATS", "json:/nowhere/x", "problem", "/nowhere is not writable", "another directory"),
        ("HAKMEM_HELP", "yes", "problem", "0 or 1", "no effect"),
    ],
)
def test_variables_that_have_no_effect(
    tool: Tool, variable: str, value: str, verdict: str, found: str, advice: str
) -> None:
    (item,) = findings(tool, **{variable: value})["options"]
    assert item["verdict"] == verdict
    assert found in item["found"]
    assert advice in item["advice"]


@pytest.mark.parametrize("size", ["500MiB", "500MB", "2.5G", "64M"])
def test_variables_that_are_understood(tool: Tool, tmp_path: Path, size: str) -> None:
    report = tmp_path / "report"
    given = {"HAKMEM_LIMIT_HARD": size, "HAKMEM_DECAY_MS": "100", "HAKMEM_STATS": f"text:{report}"}
    (item,) = findings(tool, **given)["options"]
    assert item["verdict"] == "ok"
    assert f"HAKMEM_LIMIT_HARD={size} (default none)" in item["found"]
    assert "HAKMEM_DECAY_MS=100 (default 1000)" in item["found"]
    assert not report.exists(), "asking writes nothing"


def test_the_tools_own_variables_are_known(tool: Tool) -> None:
    """HAKMEM_LIBRARY is set by the fixture."""
    (item,) = findings(tool, HAKMEM_TOOL_DEBUG="1")["options"]
    assert (item["verdict"], item["found"]) == ("ok", "no HAKMEM_* variable is set")


def test_one_wrong_variable_does_not_hide_another(tool: Tool) -> None:
    items = findings(tool, HAKMEM_DECAYMS="3", HAKMEM_HARDEN="1", HAKMEM_LIMIT_SOFT="12q")["options"]
    assert [item["verdict"] for item in items] == ["problem", "problem", "ok"]
    assert "valid: HAKMEM_HARDEN=1" in items[-1]["found"]


# ---- languages' own allocators -----------------------------------------------------------------------------


def test_cpythons_objects(tool: Tool) -> None:
    (item,) = findings(tool, "--", "/usr/bin/python3")["own allocator"]
    assert item["verdict"] == "advice"
    assert "512 bytes" in item["found"]
    assert "PYTHONMALLOC=malloc" in item["advice"]
    (item,) = findings(tool, "--", "/usr/bin/python3", PYTHONMALLOC="malloc")["own allocator"]
    assert item["verdict"] == "ok"
    assert "own allocator" not in findings(tool, "--", "/bin/ls")


@pytest.mark.parametrize(
    ("name", "programs"),
    [
        ("CPython", ["python3.11", "blender libpython3.11.so.1.0"]),
        ("Node.js", ["node"]),
        ("Java", ["java", "launcher libjvm.so"]),
        ("PHP", ["php8.2"]),
        ("Ruby", ["ruby3.1"]),
        ("Erlang", ["beam.smp"]),
        (None, ["redis-server libc.so.6", "nodeset"]),
    ],
)
def test_languages_are_told_by_names(name: str | None, programs: list[str]) -> None:
    for program, *files in map(str.split, programs):
        found = runtime_of(program, files)
        assert (found.name if found else None) == name


# ---- another process --------------------------------------------------------------------------------------


def test_a_process_on_hakmem(tool: Tool, lib: Path, compile_c: Compile) -> None:
    """Its environment counts, not that of the tool."""
    options = {"HAKMEM_LIMIT_HARD": "40M", "HAKMEM_DECAYMS": "1", "HAKMEM_HARDEN": "0"}
    with running([compile_c(PROGRAMS / "limited.c")], lib, options) as process:
        found = findings(tool, process.pid, HAKMEM_GUARDD="1")
    assert found["allocator"][0]["verdict"] == "ok"
    assert found["allocator"][0]["found"].startswith("hakmem ")
    assert any("failed with ENOMEM" in item["found"] for item in found["limits"])
    said = " ".join(item["found"] for item in found["options"])
    assert "HAKMEM_DECAYMS is not an option" in said
    assert "HAKMEM_LIMIT_HARD=40M" in said
    assert "HAKMEM_GUARDD" not in said
    assert {"mappings", "resource limits", "memory limit", "huge pages", "swap"} < set(found)
    assert "kernel" not in found, "the machine is asked about without a PID"


def test_a_process_that_is_filtered_and_locks(tool: Tool, lib: Path, compile_c: Compile) -> None:
    with running([compile_c(PROGRAMS / "confined.c")], lib, {"HAKMEM_CONFINED": "1"}) as process:
        found = findings(tool, process.pid)
    (item,) = found["system call filter"]
    assert (item["verdict"], "HAKMEM_CONFINED=1" in item["found"]) == ("advice", True)
    (item,) = found["locked memory"]
    assert (item["verdict"], "8.00 KiB" in item["found"]) == ("advice", True)


def test_a_process_that_is_not_on_hakmem(tool: Tool, on_hakmem: StartOnHakmem) -> None:
    """An address space limit of its own is told."""
    size = 8 << 30
    process = on_hakmem(
        ["/usr/bin/python3", "-c", "import time; time.sleep(300)"],
        library=None,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )
    found = findings(tool, process.pid)
    (item,) = found["allocator"]
    assert item["verdict"] == "advice"
    assert ", not hakmem" in item["found"]
    assert found["resource limits"][0]["found"] == "address space: 8.00 GiB"
    assert "limits" not in found


def test_a_preload_that_the_loader_ignored(tool: Tool, lib: Path, compiled: Compile) -> None:
    program = compiled("blocks", "-static")
    environment = {"LD_PRELOAD": str(lib), "PATH": "/bin"}
    process = subprocess.Popen([program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        (item,) = findings(tool, process.pid)["allocator"]
    finally:
        process.kill()
        process.communicate()
    assert item["verdict"] == "problem"
    assert "linked statically" in item["found"]


@pytest.mark.parametrize(
    ("preload", "found", "fix"),
    [
        ("/nowhere/libhakmem.so", "there is no /nowhere/libhakmem.so", "hakmem run --library"),
        (
            "libhakmem-of-nobody.so.0",
            "finds no libhakmem-of-nobody.so.0 where it looks",
            "hakmem run --library",
        ),
        ("OTHER", "is built for x86-64, OTHER for aarch64", "build hakmem for that machine"),
    ],
)
def test_why_the_loader_ignored_it(
    tool: Tool, lib: Path, tmp_path: Path, preload: str, found: str, fix: str
) -> None:
    other = tmp_path / "libhakmem.so"
    data = bytearray(lib.read_bytes())
    data[18] = 183  # e_machine: EM_AARCH64
    other.write_bytes(data)
    environment = {"LD_PRELOAD": preload.replace("OTHER", str(other))}
    with subprocess.Popen(["/bin/sleep", "60"], env=environment, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n", "no sleep")
        (item,) = findings(tool, process.pid)["allocator"]
        process.kill()
    assert item["verdict"] == "problem"
    assert found.replace("OTHER", str(other)) in item["found"]
    assert fix in item["advice"]


def test_few_mappings_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_hakmem: StartOnHakmem) -> None:
    limit = tmp_path / "max_map_count"
    limit.write_text("20\n")
    monkeypatch.setattr(process_checks, "MAX_MAP_COUNT", limit)
    process = on_hakmem(["sleep", "300"], library=None)
    while len(Path(f"/proc/{process.pid}/maps").read_text().splitlines()) < 20:
        pass
    found = {item.name: item for item in process_checks.process_findings(process.pid)}
    assert found["mappings"].verdict == "problem"
    assert "max_map_count=80" in found["mappings"].advice


def test_pids_that_are_none(tool: Tool) -> None:
    for pid, status in (("4194304", 4), ("2", 4)):
        ended = tool("doctor", pid)
        assert (ended.status, ended.stdout) == (status, "")
        assert ended.stderr.startswith("hakmem: ")


def test_a_misspelt_option_is_no_program(tool: Tool) -> None:
    ended = tool("doctor", "--jsn")
    assert (ended.status, ended.stdout) == (2, "")
    assert "No such option '--jsn'" in ended.stderr
