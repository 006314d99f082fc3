"""bench/run --tlb: the simulated TLB on made-up traces, and in a program whose pages have a known size."""

from pathlib import Path

import pytest
from harness import tlb
from harness.allocators import GLIBC
from harness.execute import RunError
from harness.real_program import CommandProgram, Job
from results import Compile, captured

REAL = Path(__file__).resolve().parents[2] / "bench" / "real"
TRACE = """#include "tlb.h"
#include <stdio.h>
static bool is_huge(uintptr_t address) { return address >> 40 == 1; }
int main(void) {
  static struct tlb tlb;
  unsigned long address;
  while (scanf("%lu", &address) == 1) tlb_access(&tlb, address, is_huge);
  printf("%lu %lu %lu", tlb.l1_misses, tlb.walks, tlb.huge_walks);
}"""
TOUCH = """#include <stdlib.h>
#include <sys/mman.h>
enum { SIZE = 64 << 20, PAGE = 4096 };
int main(int count, char **words) {
  volatile char *bytes = aligned_alloc(SIZE, SIZE);
  if (count != 2 || madvise((void *)bytes, SIZE, atoi(words[1])) != 0) return 1;
  for (int i = 0; i < 2 * SIZE; i += PAGE) bytes[i % SIZE]++;
}"""
HUGE_PAGES, SMALL_PAGES = 14, 15  # madvise()'s numbers
KIB, MIB, HUGE = 1 << 10, 1 << 20, 1 << 40


def made(compile_c: Compile, source: Path, text: str) -> str:
    source.write_text(text)
    return str(compile_c(source, f"-I{REAL}"))


@pytest.mark.parametrize(
    ("first", "step", "count", "misses"),
    [
        (MIB, 8, 512, "1 1 0"),
        (MIB, 64 * KIB, 6, "6 6 0"),
        (MIB, 64 * KIB, 7, "14 7 0"),  # all in one set of six
        (MIB, 68 * KIB, 7, "7 7 0"),
        (8 * MIB, 4 * KIB, 2048, "4096 2048 0"),
        (16 * MIB, 4 * KIB, 4096, "8192 8192 0"),
        (HUGE, 4 * KIB, 32 * 512, "32 32 32"),
        (HUGE, 2 * MIB, 40, "80 40 40"),
    ],
)
def test_rounds(tmp_path: Path, compile_c: Compile, first: int, step: int, count: int, misses: str) -> None:
    """Two of them."""
    addresses = [str(first + step * index) for index in range(count)] * 2
    trace = made(compile_c, tmp_path / "trace.c", TRACE)
    assert captured([trace], input="\n".join(addresses)).stdout == misses


@pytest.mark.skipif(tlb.missing() != "", reason=tlb.missing())
def test_pages_have_their_real_size(tmp_path: Path, compile_c: Compile) -> None:
    touch = made(compile_c, tmp_path / "touch.c", TOUCH)
    program = CommandProgram("touch", touch, "", 1, 1, make=lambda _, advice: Job([touch, str(advice)]))
    try:
        huge, small = (tlb.counts_of(program, GLIBC, advice) for advice in (HUGE_PAGES, SMALL_PAGES))
    except RunError as error:
        if "Linux 6.7" in str(error):
            pytest.skip(str(error))
        raise
    assert small["walks"] > 2 * 64 * MIB / (4 * KIB)
    assert small["huge_walks"] == 0
    if "[never]" not in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        assert huge["walks"] < small["walks"] / 2
        assert huge["huge_walks"] > 0
