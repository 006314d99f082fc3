"""Folded stacks: `outer (a.c:9);innermost (b.c:12) bytes`, a line for each stack, as flame graph scripts
read them: frames are lines of code, as sites are."""

from __future__ import annotations

from collections import defaultdict

from hakmem.profile.labels import Labels, whole_text
from hakmem.profile.model import Profile
from hakmem.profile.pprof import BEFORE_NAME, INCOMPLETE_NAME, UNSAMPLED_NAME
from hakmem.profile.sites import site_table


def to_folded(profile: Profile) -> str:
    """In bytes, scaled; wrappers of malloc included."""
    labels, table = Labels(profile), site_table(profile)
    lines: dict[str, float] = defaultdict(float)
    for site in table.sites:
        names = [whole_text(frame) for frame in reversed(labels.frames(site.stack))]
        if not site.is_complete:
            names.insert(0, INCOMPLETE_NAME)
        lines[";".join(map(plain, names))] += site.bytes.value
    lines[BEFORE_NAME] += table.before.value
    lines[UNSAMPLED_NAME] += table.unsampled_bytes
    return "".join(f"{stack} {round(value)}\n" for stack, value in lines.items() if round(value))


def plain(name: str) -> str:
    """Without what separates frames and lines."""
    return name.replace(";", ":").replace("\n", " ")
