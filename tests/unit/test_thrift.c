/* src/pool/thrift: what may be given back at once is earned by time. */
#include "pool/thrift.h"

#include "child.h"
#include "os/os_fake.h"

static void use_processor_ms(uint64_t milliseconds) { os_fake.processor_ms += milliseconds; }

static int earn_and_spend(const void *unused) {
  (void)unused;
  REQUIRE(thrift_allows(0) && !thrift_allows(1));
  use_processor_ms(10);
  REQUIRE(thrift_allows(10) && !thrift_allows(11));
  thrift_note(6);
  REQUIRE(thrift_allows(4) && !thrift_allows(5));
  thrift_note(5); /* one too many */
  REQUIRE(!thrift_allows(0));
  use_processor_ms(2);
  REQUIRE(thrift_allows(1) && !thrift_allows(2));
  return 0;
}

static int save_a_little(const void *unused) {
  (void)unused;
  use_processor_ms(1000000);
  REQUIRE(thrift_allows(1000) && !thrift_allows(1001));
  return 0;
}

CHILD_TEST(earn_and_spend)
CHILD_TEST(save_a_little)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_earn_and_spend),
      cmocka_unit_test(test_save_a_little),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
