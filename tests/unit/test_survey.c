/* src/observe/survey and src/cache/class_figures: what is where, class by class. */
#include "observe/survey.h"

#include "heaps.h"

enum { CLASS_64 = 4, CLASS_96 = 6, BLOCKS = 1000 };

static struct survey survey; /* too large for a stack */

static const struct class_survey *class_now(unsigned class) {
  survey_take(&survey);
  return &survey.classes[class];
}

static void require_sums(const struct class_survey *class) {
  REQUIRE(class->live_blocks + class->cached_blocks + class->free_blocks == class->capacity_blocks);
}

static int count_live_blocks(const void *unused) {
  (void)unused;
  void *blocks[BLOCKS];
  start_library();
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(60);
  const struct class_survey *class = class_now(CLASS_64);
  REQUIRE(class->live_blocks == BLOCKS && class->slabs == 1);
  require_sums(class);
  for (unsigned index = 0; index < BLOCKS; index += 2) hak_free(blocks[index]);
  class = class_now(CLASS_64);
  REQUIRE(class->live_blocks == BLOCKS / 2);
  require_sums(class);
  for (unsigned index = 1; index < BLOCKS; index += 2) hak_free(blocks[index]);
  class = class_now(CLASS_64);
  REQUIRE(class->live_blocks == 0);
  require_sums(class);
  return 0;
}

static int count_large_blocks(const void *unused) {
  (void)unused;
  start_library();
  unsigned class = class_of_size(100000);
  void *one = must_malloc(100000), *other = must_malloc(90000);
  REQUIRE(class_now(class)->live_blocks == 2 && survey.classes[class].slabs == 0);
  hak_free(one);
  REQUIRE(class_now(class)->live_blocks == 1);
  hak_free(other);
  hak_purge(true);
  REQUIRE(class_now(class)->capacity_blocks == 0);
  return 0;
}

static void *free_them(void *argument) {
  void **blocks = argument;
  for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
  const struct class_survey *class = class_now(CLASS_96);
  REQUIRE(class->live_blocks == 0); /* in this thread's remote-free buffer, or on the way home */
  require_sums(class);
  REQUIRE(survey.heaps_in_use >= 2);
  return NULL;
}

static int count_what_another_thread_frees(const void *unused) {
  (void)unused;
  void *blocks[BLOCKS];
  start_library();
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(96);
  on_a_thread(free_them, blocks);
  REQUIRE(class_now(CLASS_96)->live_blocks == 0 && survey.heaps_parked >= 1);
  return 0;
}

/* ---- class_figures ------------------------------------------------------------------------------------- */

static const struct class_counters *figures_of(unsigned class) {
  return &load_relaxed(&heap_of_thread->class_counters)[class];
}

static int count_what_passes(const void *unused) {
  (void)unused;
  void *blocks[BLOCKS];
  start_library();
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(60);
  const struct class_counters *figures = figures_of(CLASS_64);
  uint64_t refilled = load_relaxed(&figures->refilled_blocks);
  REQUIRE(refilled >= BLOCKS + load_relaxed(&figures->flushed_blocks));
  uint64_t requests = load_relaxed(&figures->sampled_requests);
  REQUIRE(requests > 0 && requests < BLOCKS); /* only those that missed */
  REQUIRE(load_relaxed(&figures->sampled_bytes) == 60 * requests);
  for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
  hak_purge(true);
  REQUIRE(load_relaxed(&figures->flushed_blocks) == load_relaxed(&figures->refilled_blocks));
  return 0;
}

static int count_large_requests(const void *unused) {
  (void)unused;
  start_library();
  void *block = must_malloc(100000);
  const struct class_counters *figures = figures_of(class_of_size(100000));
  REQUIRE(load_relaxed(&figures->refilled_blocks) == 1);
  REQUIRE(load_relaxed(&figures->sampled_bytes) == 100000);
  hak_free(block);
  hak_purge(true);
  return 0;
}

static void *take_a_few(void *unused) {
  (void)unused;
  for (unsigned index = 0; index < 3; index++) hak_free(must_malloc(60));
  REQUIRE(!load_relaxed(&heap_of_thread->class_counters)); /* it costs nothing yet */
  return NULL;
}

static int spare_threads_of_the_starter(const void *unused) {
  (void)unused;
  start_library();
  on_a_thread(take_a_few, NULL);
  return 0;
}

CHILD_TEST(count_live_blocks)
CHILD_TEST(count_large_blocks)
CHILD_TEST(count_what_another_thread_frees)
CHILD_TEST(count_what_passes)
CHILD_TEST(count_large_requests)
CHILD_TEST(spare_threads_of_the_starter)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_count_live_blocks),
      cmocka_unit_test(test_count_large_blocks),
      cmocka_unit_test(test_count_what_another_thread_frees),
      cmocka_unit_test(test_count_what_passes),
      cmocka_unit_test(test_count_large_requests),
      cmocka_unit_test(test_spare_threads_of_the_starter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
