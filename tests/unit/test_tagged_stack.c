/* src/base/tagged_stack: a lock-free stack of numbered items. */
#include "base/tagged_stack.h"

#include <pthread.h>

#include "unit.h"

enum { ITEMS = 64, THREADS = 4, ROUNDS = 20000 };

static struct tagged_stack stack;
static ATOMIC(uint32_t) links[ITEMS];
static ATOMIC(uint32_t) holders[ITEMS];

static ATOMIC(uint32_t) *link_of(uint32_t number) { return &links[number]; }

static void test_last_in_first_out(void **state) {
  (void)state;
  assert_int_equal(tagged_stack_pop(&stack, link_of), NO_ITEM);
  for (uint32_t number = 0; number < ITEMS; number++)
    assert_int_equal(tagged_stack_push(&stack, link_of, number), 0); /* nobody to retry against */
  for (uint32_t number = ITEMS; number-- > 0;)
    assert_int_equal(tagged_stack_pop(&stack, link_of), number);
  assert_int_equal(tagged_stack_pop(&stack, link_of), NO_ITEM);
}

static void test_pop_all_takes_the_chain(void **state) {
  (void)state;
  assert_int_equal(tagged_stack_pop_all(&stack), NO_ITEM);
  for (uint32_t number = 0; number < 3; number++) tagged_stack_push(&stack, link_of, number);
  assert_int_equal(tagged_stack_pop_all(&stack), 2);
  assert_int_equal(load_relaxed(link_of(2)), 1);
  assert_int_equal(load_relaxed(link_of(1)), 0);
  assert_int_equal(load_relaxed(link_of(0)), NO_ITEM);
  assert_int_equal(tagged_stack_pop(&stack, link_of), NO_ITEM);
}

/* The case the tag is for: between somebody's look at the head and his swap the same item leaves and
 * comes back, with another one below it. */
static void test_the_tag_tells_an_item_that_came_back(void **state) {
  (void)state;
  tagged_stack_push(&stack, link_of, 1);
  tagged_stack_push(&stack, link_of, 0);
  uint64_t seen = load_relaxed(&stack.head);
  tagged_stack_pop(&stack, link_of);
  tagged_stack_pop(&stack, link_of);
  tagged_stack_push(&stack, link_of, 0);
  assert_int_equal((uint32_t)seen, (uint32_t)load_relaxed(&stack.head));
  assert_true(seen != load_relaxed(&stack.head));
  tagged_stack_pop(&stack, link_of);
}

/* Law: whoever popped an item is its only holder. */
static void *pop_and_push(void *unused) {
  (void)unused;
  uintptr_t violations = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    uint32_t number = tagged_stack_pop(&stack, link_of);
    if (number == NO_ITEM) continue;
    violations += atomic_fetch_add(&holders[number], 1) != 0;
    atomic_fetch_sub(&holders[number], 1);
    tagged_stack_push(&stack, link_of, number);
  }
  return (void *)violations;
}

static void test_one_holder(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  for (uint32_t number = 0; number < 3; number++) tagged_stack_push(&stack, link_of, number);
  for (unsigned index = 0; index < THREADS; index++)
    assert_int_equal(pthread_create(&threads[index], NULL, pop_and_push, NULL), 0);
  for (unsigned index = 0; index < THREADS; index++) {
    void *violations;
    pthread_join(threads[index], &violations);
    assert_null(violations);
  }
  unsigned found = 0;
  while (tagged_stack_pop(&stack, link_of) != NO_ITEM) found++;
  assert_int_equal(found, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_last_in_first_out),
      cmocka_unit_test(test_pop_all_takes_the_chain),
      cmocka_unit_test(test_the_tag_tells_an_item_that_came_back),
      cmocka_unit_test(test_one_holder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
