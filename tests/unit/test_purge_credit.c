/* src/purge/purge_credit.c: what may go back early is earned by time, and lost by what was wanted
 * again. */
#include "purge/purge_credit.h"

#include "base/counters.h"
#include "child.h"
#include "config/options.h"
#include "fake/os_fake.h"

enum { ASKED_AGAIN_MS = 10, A_MS = 64 << 10 };

static void use_processor_ms(uint64_t milliseconds) {
  os_fake.processor_ms += milliseconds;
  os_fake_advance_ms(ASKED_AGAIN_MS);
}

static void fault_again(uint64_t bytes) { fetch_add_relaxed(&totals.refaulted_bytes, bytes); }

CHILD_TEST(earn_and_spend) {
  REQUIRE(purge_credit() == 0);
  use_processor_ms(10);
  REQUIRE(purge_credit() == 10 * A_MS);
  purge_credit_spend(6 * A_MS);
  REQUIRE(purge_credit() == 4 * A_MS);
  purge_credit_spend(5 * A_MS); /* no debt by that */
  REQUIRE(purge_credit() == 0);
  use_processor_ms(2);
  REQUIRE(purge_credit() == 2 * A_MS);
}

CHILD_TEST(faults_are_a_debt) {
  fault_again(5 * A_MS);
  REQUIRE(purge_credit() == -10 * A_MS && purge_credit() == -10 * A_MS);
  purge_credit_spend(A_MS);
  use_processor_ms(12);
  REQUIRE(purge_credit() == 2 * A_MS);
}

/* Its processor time begins anew. */
CHILD_TEST(a_forked_child_owes_nothing) {
  use_processor_ms(1000);
  int64_t before = purge_credit();
  os_fake.processor_ms = 0;
  use_processor_ms(3);
  REQUIRE(purge_credit() == before);
  use_processor_ms(2);
  REQUIRE(purge_credit() == before + 2 * A_MS);
}

CHILD_TEST(both_end_at_the_budget) {
  int64_t most = (int64_t)options.big_cache_bytes;
  use_processor_ms(1000000);
  REQUIRE(purge_credit() == most);
  fault_again(UINT64_C(1) << 40);
  REQUIRE(purge_credit() == -most);
}

/* With a thousand threads the answer costs more than what it saves. */
CHILD_TEST(ask_seldom) {
  use_processor_ms(10);
  REQUIRE(purge_credit() == 10 * A_MS);
  os_fake.processor_ms += 10;
  os_fake_advance_ms(ASKED_AGAIN_MS - 1);
  REQUIRE(purge_credit() == 10 * A_MS);
  os_fake_advance_ms(1);
  REQUIRE(purge_credit() == 20 * A_MS);
}
