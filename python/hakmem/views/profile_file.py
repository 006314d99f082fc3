"""A profile into a file of any format that there is, the page included."""

from __future__ import annotations

from pathlib import Path

from hakmem.profile.files import Write, save, writer_of
from hakmem.profile.model import Profile


def _page(profile: Profile) -> bytes:
    from hakmem.views.profile_page import render

    return render(profile).encode(errors="backslashreplace")


def writer(path: Path) -> Write:
    """By the name's end; HakmemError for another: ask it before the work, not after it."""
    return writer_of(path, {".html": _page})


def save_profile(profile: Profile, path: Path) -> None:
    """Whole, or kept elsewhere with an error that says where."""
    save(profile, path, writer(path))
