"""The names that mallctl answers: each by all calls, with jemalloc's types and errnos; and the figures."""

import json
import re
from collections.abc import Mapping
from errno import EINVAL, ENOENT, EPERM
from pathlib import Path

import pytest
from modes import OWN_API_MODES, assert_clean
from results import Compile, Result, Run

HERE = Path(__file__).resolve().parent
# Bytes, whether they can be read and written, and names, from jemalloc's manual.
NAMES = """
8 rw epoch max_background_threads arenas.dirty_decay_ms arenas.muzzy_decay_ms
8 rw arena.0.dirty_decay_ms arena.0.muzzy_decay_ms arena.0.dss
1 rw background_thread thread.tcache.enabled prof.active
4 rw thread.arena
8 r- version config.malloc_conf opt.dss opt.junk opt.percpu_arena opt.prof_prefix opt.stats_print_opts
1 r- config.debug config.fill config.lazy_lock config.prof config.stats config.utrace config.xmalloc
1 r- opt.abort opt.abort_conf opt.background_thread opt.confirm_conf opt.prof opt.prof_active opt.prof_final
1 r- opt.retain opt.stats_print opt.prof_leak opt.tcache opt.zero arena.0.initialized arena.4096.initialized
8 r- opt.dirty_decay_ms opt.muzzy_decay_ms opt.lg_prof_interval opt.lg_prof_sample opt.tcache_max
8 r- opt.max_background_threads
4 r- opt.narenas arenas.narenas arenas.nbins arenas.nlextents arenas.bin.0.nregs arenas.bin.38.nregs
4 r- arenas.create tcache.create
8 r- arenas.page arenas.quantum arenas.tcache_max arenas.bin.0.size arenas.bin.38.slab_size
8 r- arenas.lextent.0.size arenas.lextent.195.size prof.lg_sample
8 r- stats.active stats.allocated stats.mapped stats.metadata stats.metadata_thp stats.resident stats.retained
8 r- stats.background_thread.num_threads stats.arenas.0.pactive stats.arenas.0.pdirty stats.arenas.0.pmuzzy
8 r- stats.arenas.0.resident stats.arenas.0.small.allocated stats.arenas.0.large.allocated
8 r- stats.arenas.0.dirty_decay_ms stats.arenas.0.muzzy_decay_ms stats.arenas.4096.small.allocated
8 r- stats.arenas.0.bins.0.curregs stats.arenas.0.bins.0.curslabs stats.arenas.0.bins.0.nonfull_slabs
8 r- stats.arenas.4096.bins.38.curregs stats.arenas.4097.small.allocated
8 -w prof.reset
4 -w tcache.flush tcache.destroy
0 -- thread.tcache.flush arena.0.decay arena.0.purge arena.4096.purge
"""
# The first seven would cost each malloc and free something; no map has the others.
ABSENT = """
thread.allocated thread.allocatedp thread.deallocated thread.deallocatedp thread.peak.read thread.peak.reset
experimental.hooks.install epoc epoch. .epoch epoch.x stats stats.arenas arenas.bin.39.size arenas.bin.-1.size
arenas.bin..size arenas.bin.0 arenas.lextent.196.size arena.4095.purge arena.99999999999999999999.purge
arena.0x0.purge arena.<i>.purge stats.allocated2
"""
# Any number of blocks, and three or six words for each: utilization.c.
UTILIZATION = ["experimental.utilization.query", "experimental.utilization.batch_query"]
ANSWERS = {
    name: (int(size) if "r" in access else -EPERM, int(size) if "w" in access else -EPERM)
    for size, access, *names in map(str.split, NAMES.strip().splitlines())
    for name in names
} | {name: (-ENOENT, -ENOENT) for name in ABSENT.split()}
# ask.c has no text to give, and arena 0 stays.
ANSWERS["prof.prefix"] = (-EPERM, -EINVAL)
ANSWERS |= dict.fromkeys(UTILIZATION, (-EINVAL, -EINVAL))
NOT_ASKED = {"prof.dump", "arena.0.destroy", "arena.0.reset"}
JEMALLOC = next(Path("/").glob("usr/lib/*/libjemalloc.so.2"), None)


def answers_of(result: Result) -> dict[str, tuple[int, int]]:
    assert (result.returncode, result.stderr) == (0, "")
    rows = (line.split() for line in result.stdout.splitlines())
    return {name: (int(read), int(written)) for name, read, written in rows}


@pytest.mark.parametrize("mode", OWN_API_MODES)
def test_each_name_has_its_type(mode: str, run_program: Run) -> None:
    assert answers_of(run_program(HERE / "ask.c", mode, args=list(ANSWERS))) == ANSWERS


def test_all_names_are_asked(root: Path) -> None:
    rows = re.findall(r'^NAME\(.*?"([^"]+)"', (root / "src/jemalloc/names.def").read_text(), re.MULTILINE)
    names = {re.sub("<.>", "0", row) for row in rows}
    assert names == {re.sub(r"\b\d+\b", "0", name) for name in set(ANSWERS) - set(ABSENT.split())} | NOT_ASKED


@pytest.mark.skipif(JEMALLOC is None, reason="not installed: libjemalloc2")
def test_jemalloc_answers_alike(compile_c: Compile, plain: Run) -> None:
    """But for names that it was built without, those that hakmem leaves out, and extent hooks."""
    program = compile_c(HERE / "ask.c", f"-I{HERE.parent}", "-DSETS_ERRNO", JEMALLOC or "")
    others = (
        "prof.",
        "opt.prof",
        "opt.lg_prof",
        "thread.",
        "tcache.",
        "arenas.create",
        "experimental",
        "stats.arenas.4097",
    )
    asked = [name for name in ANSWERS if not name.startswith(tuple(others))]
    told = answers_of(plain([program, *asked]))
    of_quantum_16 = {name for name in asked if ".38." in name} | {"arenas.lextent.196.size"}
    assert {name for name in asked if told[name] != ANSWERS[name]} == {"arena.0x0.purge"} | of_quantum_16


@pytest.mark.parametrize("env", [{}, {"HAKMEM_PROFILE": "4K"}], ids=str)
@pytest.mark.parametrize("name", ["figures", "arenas", "threads", "utilization"])
@pytest.mark.parametrize("mode", ["linked", "linked-debug"])
def test_program(name: str, mode: str, env: Mapping[str, str], run_program: Run) -> None:
    assert_clean(run_program(HERE / f"{name}.c", mode, env=env))


@pytest.mark.parametrize("seed", range(3))
def test_any_bytes(seed: int, run_program: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where profiles are dumped
    names = [*ANSWERS, "prof.dump", "arena.1.reset", "arena.1.destroy"]
    assert_clean(run_program(HERE / "fuzz.c", "linked-debug", args=[seed, 20000, *names]))


def test_report_is_json(run_program: Run) -> None:
    report = json.loads(run_program(HERE / "figures.c", "linked", args=["J"]).stderr)["jemalloc"]
    assert report["stats"]["allocated"] >= report["stats.arenas"]["merged"]["small"]["allocated"] > 0
    bins = report["stats.arenas"]["merged"]["bins"]
    assert len(bins) == len(report["arenas"]["bin"]) == report["arenas"]["nbins"]
    assert report["version"].startswith("5.3.0-") and "hakmem" in report["version"]


def test_report_is_text(run_program: Run) -> None:
    text = run_program(HERE / "figures.c", "linked", args=[""]).stderr
    assert text.startswith("___ Begin jemalloc statistics ___\nVersion: ")
    assert re.search(r"^Allocated: \d+, active: \d+, .*, retained: \d+$", text, re.MULTILINE)
    assert "slab_out_bytes" in text  # hakmem's own
    assert text.endswith("--- End jemalloc statistics ---\n")


@pytest.mark.parametrize(("without", "parts"), [("J", 5), ("Jg", 2), ("Jm", 4), ("Jgm", 1)])
def test_parts_can_be_left_out(without: str, parts: int, run_program: Run) -> None:
    report = json.loads(run_program(HERE / "figures.c", "linked", args=[without]).stderr)["jemalloc"]
    assert len(report) == parts + 1  # and the version
