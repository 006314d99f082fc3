"""Call stacks in programs that hakmem is linked into begin where hakmem ends, as with the shared library."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from results import Run

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("flags", ["-rdynamic", "-rdynamic -no-pie", "-rdynamic -Wl,--gc-sections"])
def test_reports_leave_hakmem_out(
    flags: str, static_lib: Path, compile_c: Callable[..., Path], plain: Run
) -> None:
    program = compile_c(HERE / "archive.c", *flags.split(), static_lib)
    result = plain([program], env={"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"})
    innermost = re.findall(r"#0 .*\((\w+)\+0x", result.stderr)
    assert innermost == ["give", "make", "give"], result.stderr
