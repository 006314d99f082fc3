"""Are the HAKMEM_* variables of an environment valid?

The library itself decides: it is loaded into /bin/true with these variables and warns of those that it
ignores, and of implausible limits.  HAKMEM_HELP=1 lists the names that it knows."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hakmem.base.errors import DEBUG_VARIABLE, HakmemError
from hakmem.census.options import PREFIX
from hakmem.doctor.findings import Finding, advice, ok, problem
from hakmem.launch.preloadable import preloadable
from hakmem.target.library import VARIABLE, find_library

NAME = "options"
TOOL_VARIABLES = (VARIABLE, DEBUG_VARIABLE)  # the tool's own: `hakmem run` does not pass them on
STATS, HELP = "HAKMEM_STATS", "HAKMEM_HELP"
STATS_KINDS = ("text:", "json:")
QUIET_STATS = {"0", "1", "text", "json"}
PROGRAM = "/bin/true"
TIMEOUT_S = 10
WARNING = re.compile(r"^hakmem: warning: (.*)$", re.MULTILINE)
HELP_ROW = re.compile(r"^  (HAKMEM_\w+) .*\(default (.*)\)$", re.MULTILINE)
VARIABLE_NAME = re.compile(r"HAKMEM_\w+")
NO_OPTION, HOLDS = "is not an option", "will be reached first"


def option_findings(environment: Mapping[str, str]) -> list[Finding]:
    """Findings about the environment that a program would be, or was, started with."""
    ours = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    given = {name: value for name, value in ours.items() if name not in TOOL_VARIABLES}
    if not given:
        return [ok(NAME, "no HAKMEM_* variable is set")]
    try:
        library = find_library()
        warnings = warnings_of(library, given)
        defaults = dict(HELP_ROW.findall(loaded(library, {HELP: "1"}).stderr))
    except (HakmemError, OSError, subprocess.TimeoutExpired):
        said = f"{', '.join(sorted(given))} set, but not checked: the library cannot be loaded"
        return [advice(NAME, said, "see library")]
    found = [_of_warning(warning, list(defaults)) for warning in warnings]
    bad = {name for warning in warnings for name in VARIABLE_NAME.findall(warning)[:1]}
    if no_place := _of_stats_file(given.get(STATS, "")):
        found += no_place
        bad.add(STATS)
    good = [
        f"{name}={value} (default {defaults[name].strip(chr(34)) or 'none'})"
        for name, value in sorted(given.items())
        if name not in bad and name in defaults
    ]
    return [*found, *([ok(NAME, f"valid: {', '.join(good)}")] if good else [])]


def warnings_of(library: Path, given: Mapping[str, str]) -> list[str]:
    """The library's warnings about these variables; it prints no report, writes no file, lists no options."""
    asked = {name: value for name, value in given.items() if name != HELP}
    how = asked.get(STATS, "")
    if how in QUIET_STATS or how.startswith(STATS_KINDS):
        del asked[STATS]
    if given.get(HELP, "0") not in ("0", "1"):
        asked[HELP] = given[HELP]
    return WARNING.findall(loaded(library, asked).stderr)


def loaded(library: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A program that does nothing, on hakmem."""
    return subprocess.run(
        [PROGRAM],
        env={"LD_PRELOAD": str(preloadable(library)), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )


def _of_warning(warning: str, names: list[str]) -> Finding:
    if HOLDS in warning:
        return advice(NAME, warning, "correct or remove it: the tighter limit decides")
    variable = VARIABLE_NAME.match(warning)
    if variable is None or NO_OPTION not in warning:
        return problem(NAME, warning, "correct it: it has no effect as it is (docs/OPTIONS.md)")
    near = difflib.get_close_matches(variable[0], names, 1, 0.75)
    remedy = f"did you mean {near[0]}?" if near else "remove it; HAKMEM_HELP=1 lists the valid ones"
    return problem(NAME, f"{variable[0]} is not an option: it has no effect", remedy)


def _of_stats_file(how: str) -> list[Finding]:
    """Checked early: otherwise a report that cannot be written fails only when the program ends."""
    kind, colon, name = how.partition(":")
    if kind + colon not in STATS_KINDS:
        return []
    if not name:
        return [problem(NAME, f"{STATS}={how} names no file", "use text:FILE or json:FILE")]
    folder = Path(name).parent
    if os.access(folder, os.W_OK | os.X_OK):
        return []
    said = f"{STATS}={how}: the directory {folder} is not writable"
    return [problem(NAME, said, "choose another directory")]
