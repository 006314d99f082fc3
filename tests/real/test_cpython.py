"""CPython's own tests on hakmem: with Python's object allocator, and with every object through malloc.

A test case fails here when it passes without hakmem, in the same configuration, and on hakmem does not:
it fails, is skipped, or is missing from the report because its interpreter died."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest
from real.sides import Side, Sides
from results import Find

pytestmark = pytest.mark.alone

PYTHON = "/usr/bin/python3"
TEST_PACKAGE = "/usr/lib/python3*/test"
# With Python's object allocator, which asks malloc for blocks above 512 bytes only.
# The longest come first: they mostly sleep, and others run meanwhile.
NEEDED = "test_subprocess test_threading test_dict test_json test_zlib".split()
WHERE_PRESENT = "test_ctypes test_mmap test_thread test_xml_etree_c test_bz2 test_sqlite3 test_sqlite".split()
# With every object through malloc; of these the former would ask malloc for little that is not asked here.
MORE_NEEDED = ["test_multiprocessing_fork"]
MORE_WHERE_PRESENT = (
    "test_list test_set test_bytes test_buffer test_decimal test_re test_pickle test_gc".split()
)
MODULES = {
    "pymalloc": (NEEDED, WHERE_PRESENT),
    "malloc": (MORE_NEEDED + NEEDED, WHERE_PRESENT + MORE_WHERE_PRESENT),
}
AT_A_TIME = 3
TIMEOUT_S = 270.0
SAID_MAX = 8000  # where each thread of a module that hangs stands
HANGS = "*TestPool.test_terminate"  # 1 of 1,600 Pool.terminate() waits for ever on any malloc
HANG_S = 200  # then regrtest prints where a module's threads stand, and ends it
RAN_TO_ITS_END = (0, 2, 3)  # all passed; some failed; some changed the environment

Cases = dict[str, str]


@pytest.mark.long("CPython: two minutes, 20 of its modules; test_languages and test_fortified run it")
@pytest.mark.parametrize("allocator", MODULES)
def test_own_tests(sides: Sides, program: Find, allocator: str) -> None:
    python = program(PYTHON)
    package = program(f"{TEST_PACKAGE}/test_dict.py").parent
    needed, where_present = MODULES[allocator]
    modules = needed + [name for name in where_present if has_module(package, name)]

    def job(side: Side) -> tuple[Cases, str]:
        report = side.folder / "cases.xml"
        options = [f"-j{AT_A_TIME}", f"--timeout={HANG_S}", "--junit-xml", report, "-i", HANGS]
        ended = side.run(
            [python, "-m", "test", *options, *modules],
            env={"PYTHONMALLOC": allocator},
            timeout=TIMEOUT_S,
            statuses=RAN_TO_ITS_END,
            processes=1 + len(modules),
        )
        return outcomes(report), ended.stdout + ended.stderr

    with ThreadPoolExecutor(max_workers=2) as pool:  # both at once: the longest modules mostly sleep
        (without, _), (on_hakmem, said) = pool.map(job, sides)
    passed = {case for case, outcome in without.items() if outcome == "passed"}
    unfit = [name for name in needed if not any(case.startswith(f"test.{name}.") for case in passed)]
    assert not unfit, f"{unfit} do not pass without hakmem"
    worse = {case: on_hakmem.get(case, "missing") for case in passed if on_hakmem.get(case) != "passed"}
    assert not worse, said[-SAID_MAX:]


def has_module(package: Path, name: str) -> bool:
    return (package / f"{name}.py").exists() or (package / name / "__init__.py").exists()


def outcomes(report: Path) -> Cases:
    """How each test case of a JUnit report ended: passed, skipped, failure or error; of cases of the same
    name the first that did not pass."""
    cases: Cases = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.attrib["name"]
        kinds = [child.tag for child in case if child.tag in ("skipped", "failure", "error")]
        if cases.get(name, "passed") == "passed":
            cases[name] = kinds[0] if kinds else "passed"
    return cases
