"""The time that what is made for a release has: one rule for scripts/dist, scripts/wheel and scripts/deb."""

import os
from pathlib import Path

import epoch
import pytest
from results import captured

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "SOURCE_DATE_EPOCH"


def test_what_is_asked_for_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1000000000")
    assert epoch.epoch_s() == 1_000_000_000


@pytest.mark.parametrize("wrong", ["yesterday", "-1", "1.5", "\N{SUPERSCRIPT TWO}"])
def test_what_is_no_time_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, wrong)
    with pytest.raises(SystemExit, match=f"{VARIABLE} is {wrong!r}, which is not a number of seconds"):
        epoch.epoch_s()


@pytest.mark.parametrize("missing", ["repository", "git"])
def test_without_git_it_has_to_be_said(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(epoch, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    if missing == "git":
        monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=f"set {VARIABLE} to the time"):
        epoch.epoch_s()


@pytest.mark.long("10 seconds of packing")
@pytest.mark.parametrize("script", ["deb", "wheel", "dist --dirty"])
def test_all_builders_ask_it(script: str, tmp_path: Path) -> None:
    """Before they build anything."""
    if script != "deb":
        pytest.importorskip("auditwheel", reason="wheels are not built without a package index")
    name, *options = script.split()
    to = [tmp_path] if script == "deb" else ["--to", tmp_path, *options]
    step = captured((ROOT / "scripts" / name, *to), env=os.environ | {VARIABLE: "yesterday"})
    assert step.returncode != 0
    assert f"hakmem: {VARIABLE} is 'yesterday', which" in step.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
