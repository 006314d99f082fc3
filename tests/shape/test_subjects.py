"""Subjects of commits: at most 72 columns, and no turn of language.py."""

import shutil
from pathlib import Path

import pytest
from results import captured
from shape import language

SINCE = "6701bcd2"  # older ones are as they are
COLUMNS = 72


def test_subjects_of_commits(root: Path) -> None:
    if not (root / ".git").exists() or not shutil.which("git"):
        pytest.skip("there is no git, or the sources are not in its repository")
    words = ["git", "-C", root, "log", "--no-merges", "--abbrev=8", "--format=%h %s", f"{SINCE}..HEAD"]
    log = captured(words)
    if log.returncode != 0:
        pytest.skip(f"the history does not go back to {SINCE}: {log.stderr.strip()}")
    found = []
    for line in log.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > COLUMNS:
            found.append(f"{commit}: {len(subject)} columns, {COLUMNS} at most: {subject}")
        text = (subject.partition(": ")[2] or subject).capitalize()  # after the part of hakmem
        found += [
            f"{commit}: {subject}: say {pattern.better}"
            for _, pattern, _ in language.faults_of(text + "\n", "commits")
        ]
    assert not found, "\n".join(found)
