/* src/pool/purge_credit.c: what may be given back at once is earned by time. */
#include "pool/purge_credit.h"

#include "child.h"
#include "fake/os_fake.h"

enum { ASKED_AGAIN_MS = 16 };

static void use_processor_ms(uint64_t milliseconds) {
  os_fake.processor_ms += milliseconds;
  os_fake_advance_ms(ASKED_AGAIN_MS);
}

CHILD_TEST(earn_and_spend) {
  REQUIRE(purge_credit_allows(0) && !purge_credit_allows(1));
  use_processor_ms(10);
  REQUIRE(purge_credit_allows(10) && !purge_credit_allows(11));
  purge_credit_note(6);
  REQUIRE(purge_credit_allows(4) && !purge_credit_allows(5));
  purge_credit_note(5); /* one too many */
  REQUIRE(!purge_credit_allows(0));
  use_processor_ms(2);
  REQUIRE(purge_credit_allows(1) && !purge_credit_allows(2));
}

CHILD_TEST(save_a_little) {
  use_processor_ms(1000000);
  REQUIRE(purge_credit_allows(1000) && !purge_credit_allows(1001));
}

/* With a thousand threads the answer costs more than what it saves. */
CHILD_TEST(ask_seldom) {
  use_processor_ms(10);
  REQUIRE(purge_credit_allows(10));
  os_fake.processor_ms += 10;
  os_fake_advance_ms(ASKED_AGAIN_MS - 1);
  REQUIRE(!purge_credit_allows(11));
  os_fake_advance_ms(1);
  REQUIRE(purge_credit_allows(20));
}
