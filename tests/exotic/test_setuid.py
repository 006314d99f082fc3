"""A program that runs with its owner's rights takes no options from whoever starts it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS
from preload import clean_environment
from results import captured

HERE = Path(__file__).resolve().parent
SET_USER_ID = 0o4755


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that everybody may enter, where a program may be setuid, with a subfolder to write to."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a program setuid for another user")
    path = Path(tempfile.mkdtemp(prefix="hakmem-setuid-"))
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        shutil.rmtree(path)
        pytest.skip(f"{path} does not allow setuid programs")
    path.chmod(0o755)
    (path / "reports").mkdir()
    (path / "reports").chmod(0o777)
    yield path
    shutil.rmtree(path)


def run_as_nobody(program: Path, **options: str) -> subprocess.CompletedProcess[str]:
    nobody = pwd.getpwnam("nobody")
    return captured(
        [program],
        env=clean_environment() | options,
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        cwd="/",
        check=True,
        timeout=60,
    )


@pytest.mark.parametrize("is_setuid", [True, False], ids=["setuid", "plain"])
def test_options(is_setuid: bool, folder: Path, compile_c: Callable[..., Path], static_lib: Path) -> None:
    """HAKMEM_STATS would write a file with the owner's rights; the same copy without the bit does as told."""
    program = folder / "program"
    shutil.copy(compile_c(HERE / "setuid.c", INCLUDE_TESTS, static_lib), program)
    program.chmod(SET_USER_ID if is_setuid else 0o755)
    report = folder / "reports" / "report.json"
    result = run_as_nobody(program, HAKMEM_STATS=f"json:{report}", HAKMEM_HELP="1", HAKMEM_NONSENSE="1")
    real, effective = map(int, result.stdout.split())
    assert (effective == 0) == is_setuid, "the kernel did not honour the bit"
    assert real == pwd.getpwnam("nobody").pw_uid
    assert report.exists() != is_setuid
    assert (result.stderr == "") == is_setuid
