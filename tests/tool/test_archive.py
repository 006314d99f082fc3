"""A program that libhakmem.a is linked into is seen as any other, whatever its linker leaves out."""

from pathlib import Path

import pytest
from results import Compile
from tool.processes import hakmem, hakmem_json, running

WAITING = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  static void *volatile block;
  block = malloc(3 << 20);
  puts("ready");
  fflush(stdout);
  return pause();
}
"""


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("flags", [[], ["-s"], ["-static"]], ids=lambda flags: " ".join(flags) or "plain")
def test_it_is_found(
    flags: list[str], static_lib: Path, compile_c: Compile, lib: Path, tmp_path: Path
) -> None:
    source = tmp_path / "waiting.c"
    source.write_text(WAITING)
    program = compile_c(
        source, "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", *flags, static_lib
    )
    with running([program], lib, {"LD_PRELOAD": ""}) as process:
        assert str(process.pid) in hakmem("ps").stdout
        figures = hakmem_json("stat", process.pid)
        assert figures
