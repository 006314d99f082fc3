"""A profile into a file of any format that there is, the page included."""

from __future__ import annotations

from pathlib import Path

from hakmem.profile.files import Write, writer_of, writers
from hakmem.profile.model import Profile

PAGE = ".html"


def _page(profile: Profile) -> bytes:
    from hakmem.views.profile_page import render

    return render(profile).encode(errors="backslashreplace")


def writer(path: Path) -> Write:
    """Chosen by the name's end; HakmemError if unknown: call it before the work, not after it."""
    return writer_of(path, {PAGE: _page})


def ending(path: Path) -> str:
    """The part of the name that tells the format; "" if none does."""
    return next((suffix for suffix in (*writers(), PAGE) if path.name.endswith(suffix)), "")
