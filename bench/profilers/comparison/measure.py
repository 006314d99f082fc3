"""Measures the processor time of work, and the time and the accuracy of a first answer."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .places import WORK
from .programs import Program
from .score import Score, of_folded, score
from .tools import LIMIT_S, Start, Tool

Say = Callable[[str], None]
LEAKED_BEFORE_S = 2.0  # how long a process has leaked when it is asked


@dataclass(frozen=True)
class Answer:
    seconds: float  # from the question to the sites with their names
    score: Score


def fresh_folder(name: str) -> Path:
    folder = WORK / "out" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def forget_names(pid: int) -> None:
    """Removes the names that a compiler has written for profilers of a process that has ended."""
    Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def processor_seconds(start: Start, *arguments: str) -> float:
    """Processor time of the program and of its descendants that have ended."""
    with subprocess.Popen(
        start.with_arguments(*arguments), env=start.variables(), cwd=WORK, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    forget_names(process.pid)
    if process.returncode:
        raise RuntimeError(f"{Path(start.words[0]).name} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def costs(program: Program, tools: list[Tool], rounds: int, say: Say) -> dict[str, float]:
    """By variant, the median of processor seconds of the same work; rounds are interleaved."""
    variants: dict[str, tuple[Start, float]] = {"plain": (Start(program.words), 1.0)}
    for tool in tools:
        if tool.has_cost:
            folder = fresh_folder(f"{program.name}-cost-{tool.name}".replace(" ", "-"))
            if tool.is_there_when_off:
                variants[f"{tool.name} off"] = (tool.off(program), 1.0)
            variants[f"{tool.name} on"] = (tool.on(program, folder), tool.turns_share)
    found: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds):
        for name, (start, share) in variants.items():
            if share < 1 and number:
                continue  # very slow, and very stable
            say(f"{program.name}: round {number + 1} of {rounds}: {name}")
            try:
                seconds = processor_seconds(start, "work", str(max(1, round(program.turns * share))))
                found[name].append(seconds / share)
            except RuntimeError as error:
                say(f"{name}: {error}")
    return {name: statistics.median(values) for name, values in found.items() if values}


def answer(program: Program, tool: Tool, seconds: float) -> Answer:
    """Asks once: a process that leaks already, or one that is started for it."""
    folder = fresh_folder(f"{program.name}-answer-{tool.name}".replace(" ", "-"))
    return (
        attached(program, tool, folder, seconds) if tool.attaches else started(program, tool, folder, seconds)
    )


def attached(program: Program, tool: Tool, folder: Path, seconds: float) -> Answer:
    start = tool.off(program)
    with subprocess.Popen(
        start.with_arguments("pace", "600"), env=start.variables(), cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "leaking\n":
                raise RuntimeError("the program did not start")
            time.sleep(LEAKED_BEFORE_S)
            began = time.monotonic()
            lines = list(tool.ask(process.pid, folder, seconds))
            took = time.monotonic() - began
            if process.poll() is not None and not tool.ends_process:
                raise RuntimeError(f"the process that it was asked about has ended with {process.returncode}")
        finally:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
    forget_names(process.pid)
    return Answer(took, score(of_folded(lines), program.shares))


def started(program: Program, tool: Tool, folder: Path, seconds: float) -> Answer:
    start = tool.on(program, folder)
    began = time.monotonic()
    with subprocess.Popen(
        start.with_arguments("pace", f"{seconds:g}"), env=start.variables(), cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise RuntimeError(f"not ended after {LIMIT_S:g} s") from None
    forget_names(process.pid)
    if process.returncode:
        raise RuntimeError(f"it ended with {process.returncode}")
    lines = list(tool.report(program, folder))
    return Answer(time.monotonic() - began, score(of_folded(lines), program.shares))
