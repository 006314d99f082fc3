"""hakmem-walk on a program that waits.

with waiting(program, "2", "20000") as process:
    walked = walk(walker, process.pid)          its status, its sentence, its figures
    walked.total("live_bytes")                  over all arenas
    asked(process, "i")                         what the program itself says (shadow.c)
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from preload import clean_environment
from results import captured

LIMIT_S = 60


@dataclass(frozen=True)
class Walked:
    status: int
    sentence: str
    told: dict[str, Any]

    def total(self, *keys: str) -> int:
        return sum(arena[key] for arena in self.told["arenas"] for key in keys)

    def resident(self, key: str) -> int:
        return sum(arena["resident"][key] for arena in self.told["arenas"])


def walk(walker: Path, of: int | Path, *options: str | Path) -> Walked:
    step = captured([walker, str(of), *options], timeout=LIMIT_S)
    assert step.returncode in {0, 2, 3}, f"{step.returncode} {step.stderr}"
    assert bool(step.stdout) == (step.returncode != 2)
    assert step.stderr.count("\n") == (step.returncode == 2)
    return Walked(step.returncode, step.stderr, json.loads(step.stdout or "{}"))


@contextmanager
def waiting(
    *words: str | Path, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = clean_environment() | dict(variables or {})
    with subprocess.Popen([str(word) for word in words], env=environment, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> Any:  # noqa: ANN401 - whatever the program says
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def asked(process: subprocess.Popen[str], command: str) -> Any:  # noqa: ANN401  # noqa: ANN401 - whatever the program says
    assert process.stdin is not None
    process.stdin.write(command)
    process.stdin.flush()
    return said(process)
