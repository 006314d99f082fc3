"""`hakmem run --profile` of a chain of programs: which of the files is the one that was meant."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from hakmem.launch.profiling import SAMPLES_MIN, Profiling
from tool.conftest import Tool
from tool.test_run_profile import FINE, ends

__all__ = ["ends"]


@dataclass
class Written:
    """Results that are only remembered."""

    words: list[tuple[str, str]] = field(default_factory=list)

    def write_all_of(self, program: Any, _mode: object, word: str = "") -> None:  # noqa: ANN401
        self.words.append((program.title, word))

    def names_of(self, program: Any, word: str) -> list[str]:  # noqa: ANN401
        return [f"x.{program.pid}{'.' * bool(word)}{word}.pb.gz"]


def image(title: str, samples: int, ran_s: float, pid: int = 7) -> SimpleNamespace:
    """A program that a process was."""
    ended = f"executed what followed {title}"
    return SimpleNamespace(title=title, sample_count=samples, ran_s=ran_s, pid=pid, latest=True, ended=ended)


def test_a_shim_has_no_file_and_the_longest_one_is_named() -> None:
    said: list[str] = []
    results = Written()
    profiling = Profiling(
        cast(Any, SimpleNamespace(pid=7)), cast(Any, None), cast(Any, SimpleNamespace(mode="live")),
        cast(Any, results), said.append,
    )  # fmt: skip
    shim, tool = image("bash", SAMPLES_MIN - 1, 0.1), image("loader", SAMPLES_MIN, 2.0)
    silent, last = image("env", 0, 0.1), image("python3", 3, 30.0)
    profiling.done = {7: cast(Any, [shim, silent, tool, last]), 8: cast(Any, [image("sh", 5, 0.2, pid=8)])}
    for pid in (8, 7):
        profiling._write(pid)
    assert results.words == [("sh", ""), ("loader", "exec1"), ("python3", "")]
    profiling._sum_up()
    assert said == [
        "bash (PID 7) executed what followed bash after 100 ms: 9 samples, no file",
        "python3 (PID 7) ran longest, 30 s; its profile is x.7.pb.gz",
    ]


def test_one_file_needs_no_summary(tool: Tool, ends: Path, tmp_path: Path) -> None:
    script = f'exec "{ends}" exit'
    ended = tool("run", "--profile", "-o", tmp_path / "x.%p.json", "--", "sh", "-c", script)
    assert ended.status == 3
    assert "ran longest" not in ended.stderr
    assert not list(tmp_path.glob("*.exec*"))


def test_a_chain_of_programs_that_were_sampled(tool: Tool, ends: Path, tmp_path: Path) -> None:
    ended = tool("run", "--profile", "-o", tmp_path / "x.%p.json", *FINE, "--", ends, "executes")
    assert ended.status == 3, ended.stderr
    said = re.search(r"hakmem: \S+ \(PID (\d+)\) ran longest, .*; its profile is (\S+)\n", ended.stderr)
    assert said, ended.stderr
    assert Path(said[2]).name in (f"x.{said[1]}.json", f"x.{said[1]}.exec1.json")
    assert Path(said[2]).is_file()
