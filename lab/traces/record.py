"""Traces of the workloads of bench/, made by `hakmem run -o`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from harness.allocators import Allocator
from harness.execute import RunError
from harness.paths import HAKMEM_LIBRARY, REPOSITORY
from harness.workload import Length, Workload

OUTPUT = REPOSITORY / "build" / "lab" / "traces"
# The program yields its processor to the tool, which would else miss events.
COMMAND = "{python} -m hakmem run -o {file} -- nice -n19"
# `hakmem run` records no child.  A child that does the work is started by a script: the variable that names
# the folder where its parent looks for it, and a command that prints its path.
CHILDREN = {
    "cc1plus": ("COMPILER_PATH", ("g++", "-print-prog-name=cc1plus")),
    "git": ("GIT_EXEC_PATH", ("which", "git")),
}
SCRIPT = """#!/bin/sh
unset LD_PRELOAD HAKMEM_PROFILE HAKMEM_KEEPER # of the parent's recording
exec {command} {program} "$@"
"""


def recorder(folder: Path) -> Allocator:
    """Records into the folder."""
    variables = {"LD_PRELOAD": ""}
    for name, (variable, finder) in CHILDREN.items():
        if shutil.which(finder[0]):
            program = subprocess.check_output(finder, text=True).strip()
            command = COMMAND.format(python=sys.executable, file=folder / "$$.hkt")
            script = folder / variable / name
            script.parent.mkdir(parents=True)
            script.write_text(SCRIPT.format(command=command, program=program))
            script.chmod(0o755)
            variables[variable] = str(script.parent)
    wrapper = COMMAND.format(python=sys.executable, file=folder / "first.hkt").split()
    return Allocator("hakmem", HAKMEM_LIBRARY, variables=tuple(variables.items()), wrapper=tuple(wrapper))


def record(workload: Workload, length: Length) -> Path:
    """The trace of the process that allocated most: a compiler, say, not its driver."""
    place, new = OUTPUT / f"{workload.name}.hkt", OUTPUT / "new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    workload.prepare(length)
    workload.timed(recorder(new), length)
    largest = max(new.glob("*.hkt"), key=lambda path: path.stat().st_size, default=None)
    if largest is None:
        raise RunError("no process was recorded")
    largest.replace(place)
    shutil.rmtree(new)
    return place
