"""hakmem doctor: the HAKMEM_* variables that it has, languages' own allocators, another process."""

import json
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hakmem.doctor import process_checks
from hakmem.doctor.runtimes import runtime_of
from tool.conftest import Tool
from tool.processes import running, wait_until

PROGRAMS = Path(__file__).parent / "programs"
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
        ("HAKMEM_STATS", "1:/nowhere/x", "problem", "/nowhere is not writable", "another directory"),
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
    ("program", "files", "name"),
    [
        ("python3.11", [], "CPython"),
        ("blender", ["libpython3.11.so.1.0"], "CPython"),
        ("node", [], "Node.js"),
        ("java", [], "Java"),
        ("launcher", ["libjvm.so"], "Java"),
        ("php8.2", [], "PHP"),
        ("ruby3.1", [], "Ruby"),
        ("beam.smp", [], "Erlang"),
        ("redis-server", ["libc.so.6"], None),
        ("nodeset", [], None),
    ],
)
def test_languages_are_told_by_names(program: str, files: list[str], name: str | None) -> None:
    found = runtime_of(program, files)
    assert (found.name if found else None) == name


# ---- another process --------------------------------------------------------------------------------------


def test_a_process_on_hakmem(tool: Tool, lib: Path, compile_c: Callable[..., Path]) -> None:
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


def test_a_process_that_is_filtered_and_locks(tool: Tool, lib: Path, compile_c: Callable[..., Path]) -> None:
    with running([compile_c(PROGRAMS / "confined.c")], lib, {"HAKMEM_CONFINED": "1"}) as process:
        found = findings(tool, process.pid)
    (item,) = found["system call filter"]
    assert (item["verdict"], "HAKMEM_CONFINED=1" in item["found"]) == ("advice", True)
    (item,) = found["locked memory"]
    assert (item["verdict"], "8.00 KiB" in item["found"]) == ("advice", True)


def test_a_process_that_is_not_on_hakmem(
    tool: Tool, on_hakmem: Callable[..., subprocess.Popen[bytes]]
) -> None:
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


def test_a_preload_that_the_loader_ignored(tool: Tool, lib: Path, compiled: Callable[..., Path]) -> None:
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
        ("/nowhere/libhakmem.so", "there is no /nowhere/libhakmem.so", "hakmem library"),
        ("libhakmem-of-nobody.so.0", "finds no libhakmem-of-nobody.so.0 where it looks", "hakmem library"),
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


def test_few_mappings_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_hakmem: Callable[..., subprocess.Popen[bytes]],
) -> None:
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
