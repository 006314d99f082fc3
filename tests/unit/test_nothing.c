/* src/hardened/nothing: the addresses that malloc(0) returns in hardened mode. */
#include "hardened/nothing.h"

#include "child.h"
#include "fake/os_fake.h"
#include "map/window.h"
#include "report/report.h"

BEFORE(child) { REQUIRE(window_init(UINT64_C(64) << 30)); }

CHILD_TEST(each_has_an_address_of_its_own) {
  uintptr_t before = 0;
  REQUIRE(!nothing_covers(0x1000));
  for (unsigned count = 0; count < 1000; count++) {
    uintptr_t address = nothing_take(16);
    REQUIRE(address && nothing_covers(address) && address % 16 == 0);
    REQUIRE(address != before);
    REQUIRE(nothing_check(address, "realloc", false));
    before = address;
  }
}

CHILD_TEST(alignments_up_to_the_largest) {
  for (size_t alignment = 16; alignment <= NOTHING_ALIGNMENT_MAX; alignment *= 2)
    REQUIRE(nothing_take(alignment) % alignment == 0);
}

/* What was given comes again as late as it can, and is reported when it is given twice. */
CHILD_TEST(freed_ones_are_told) {
  misuse_action = MISUSE_WARN;
  uintptr_t address = nothing_take(16);
  nothing_check(address, "free", true);
  REQUIRE(os_fake.written_bytes == 0);
  REQUIRE(nothing_take(16) != address);
  REQUIRE(!nothing_check(address, "realloc", false));
  REQUIRE(strstr(os_fake.written, "realloc of 0x"));
  os_fake_forget_written();
  nothing_check(address, "free", true);
  REQUIRE(strstr(os_fake.written, "free of 0x"));
}

CHILD_TEST(a_refused_region_is_no_address) {
  os_fake_fail(OS_CALLS_ALL, 1, UINT64_MAX);
  REQUIRE(nothing_take(16) == 0);
}
