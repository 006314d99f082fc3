"""HAKMEM_* options as a user meets them: warnings, reports at exit.  The help: test_generated_docs.py."""

import json
import re
from pathlib import Path

import pytest
from results import Result, Run

HERE = Path(__file__).resolve().parent


@pytest.fixture
def churn(run_program: Run) -> Run:
    """churn(**options) runs churn.c with exactly these options."""

    def run(**options: str) -> Result:
        result = run_program(HERE / "churn.c", "preload", env=options, stats=False)
        assert (result.returncode, result.stdout) == (0, "done\n")
        return result

    return run


def test_silent_by_default(churn: Run) -> None:
    assert churn().stderr == ""


def test_help_off(churn: Run) -> None:
    assert churn(HAKMEM_HELP="0").stderr == ""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("HAKMEM_NO_SUCH_OPTION", ["1"]),
        ("HAKMEM_DECAY_MS", ["soon", "12x", "", "-5", "99999999999999999999999", "86400001"]),
        ("HAKMEM_ROUTE_P", ["2", "yes please"]),
        ("HAKMEM_WINDOW_GIB", ["0"]),
    ],
)
def test_one_warning_for_what_it_cannot_use(name: str, values: list[str], churn: Run) -> None:
    for value in values:
        stderr = churn(**{name: value}).stderr
        assert re.fullmatch(rf"hakmem: warning: {name}\b[^\n]*; ignored\n", stderr), stderr


def test_a_warning_for_each_bad_option(churn: Run) -> None:
    lines = churn(HAKMEM_NO_SUCH_OPTION="1", HAKMEM_DECAY_MS="soon").stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("hakmem: warning: HAKMEM_") for line in lines)


@pytest.mark.parametrize("value", ["0", "250", "1K", "1M"])
def test_numbers_and_suffixes_are_accepted(value: str, churn: Run) -> None:
    assert churn(HAKMEM_DECAY_MS=value, HAKMEM_BIG_CACHE_BYTES="1G").stderr == ""


def test_stats_as_text_on_standard_error(churn: Run) -> None:
    stderr = churn(HAKMEM_STATS="1").stderr
    assert stderr.startswith("hakmem")
    assert "refill" in stderr


def test_stats_begin_with_what_a_user_asks(churn: Run) -> None:
    """Requests, live bytes, memory held and resident: the counters come after them."""
    lines = churn(HAKMEM_STATS="1").stderr.splitlines()
    names = [re.split(r"\s{2,}", line.strip())[0] for line in lines[1:7]]
    assert names == ["mallocs", "live", "held", "held, peak", "RSS", "RSS, peak"]
    figures = [float(re.search(r"\s([\d.]+) ", line)[1]) for line in lines[1:7]]  # type: ignore[index]
    assert figures[0] > 1000
    assert 0 <= figures[1] <= figures[2] <= figures[3]
    assert 0 < figures[4] <= figures[5]


def test_stats_as_json_on_standard_error(churn: Run) -> None:
    said = churn(HAKMEM_STATS="json").stderr
    assert said.endswith("}\n")
    report = json.loads(said)
    assert report["counters"]["refilled_blocks"] > 0
    assert report["counters"]["large_allocs"] > 0
    assert report["counters"]["big_allocs"] > 0


def test_stats_to_a_file_named_by_process(churn: Run, tmp_path: Path) -> None:
    assert churn(HAKMEM_STATS=f"json:{tmp_path}/a-%p-%p.json").stderr == ""
    (path,) = tmp_path.iterdir()
    pid = json.loads(path.read_text())["pid"]
    assert path.name == f"a-{pid}-{pid}.json"


def test_text_stats_to_a_file(churn: Run, tmp_path: Path) -> None:
    assert churn(HAKMEM_STATS=f"text:{tmp_path}/report").stderr == ""
    assert (tmp_path / "report").read_text().startswith("hakmem")


def test_stats_to_a_file_that_cannot_be_made(churn: Run, tmp_path: Path) -> None:
    lines = churn(HAKMEM_STATS=f"json:{tmp_path}/missing/%p.json").stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("hakmem: warning: ")


def test_lock_stats(churn: Run) -> None:
    stderr = churn(HAKMEM_SHARED_POOL_LOCK_STATS="1").stderr
    assert stderr.startswith("hakmem: shared pool slow-path acquisitions")
    assert re.search(r"\d ?%", stderr), "shares in percent"
