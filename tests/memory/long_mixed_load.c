/* A long mixed load by four threads that hand blocks over and come and go (shadow.h).  Meanwhile
 * the number of the process's mappings stays below 1,000 and resident memory in proportion to what
 * is live; after every other block was freed, and a decay, it is in proportion to that.
 *   argv[1] seconds; argv[2], argv[3] the ratios, in percent, of the peak and after idleness
 * Prints mappings and both ratios.  The test sets HAKMEM_DECAY_MS=200. */

#include "concurrency/shadow.h"
#include "memory/blocks.h"

enum { WORKERS = 4, STEPS_A_LIFE = 20000, MAPS_MAX = 1000, DECAY_MS = 200, KEEP_EVERY = 2 };
enum { SAMPLE_MS = 100, WARM_SAMPLES = 5, SLACK_MIB = 8 };

static atomic_bool stop;

static void *live(void *seed) {
  uint64_t random = random_seed((size_t)seed);
  for (size_t i = 0; i < STEPS_A_LIFE && !atomic_load(&stop); i++) shadow_step(&random);
  return NULL;
}

static void *keep_living(void *number) {
  for (size_t life = 0; !atomic_load(&stop); life++)
    thread_run(live, (void *)((size_t)number + life * WORKERS));
  return NULL;
}

static size_t map_count(void) {
  char text[4096];
  size_t count = 0;
  ssize_t length;
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  while ((length = read(fd, text, sizeof text)) > 0)
    for (ssize_t i = 0; i < length; i++) count += text[i] == '\n';
  close(fd);
  return count;
}

/* A hint while others change the table: their sizes are read as they happen to be. */
static size_t live_bytes(void) {
  size_t sum = 0;
  for (size_t i = 0; i < SLOTS; i++)
    if (*(unsigned char *volatile *)&slots[i].block != NULL)
      sum += *(volatile size_t *)&slots[i].bytes;
  return sum;
}

static size_t percent(size_t rss, size_t start, size_t live) {
  size_t above = rss > start + SLACK_MIB * MIB ? rss - start - SLACK_MIB * MIB : 0;
  return above * 100 / live;
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  size_t samples = strtoul(argv[1], NULL, 10) * 1000 / SAMPLE_MS, maps = 0, peak_rss = 0,
         peak_live = 0;
  size_t start_bytes = rss_bytes();
  pthread_t workers[WORKERS];
  for (size_t i = 0; i < WORKERS; i++) workers[i] = thread_start(keep_living, (void *)i);
  for (size_t sample = 0; sample < samples; sample++) {
    sleep_ms(SAMPLE_MS);
    size_t now_maps = map_count(), rss = rss_bytes(), live = live_bytes();
    maps = now_maps > maps ? now_maps : maps;
    if (sample >= WARM_SAMPLES) {
      peak_rss = rss > peak_rss ? rss : peak_rss;
      peak_live = live > peak_live ? live : peak_live;
    }
  }
  atomic_store(&stop, true);
  for (size_t i = 0; i < WORKERS; i++) thread_join(workers[i]);
  for (size_t i = 0; i < SLOTS; i++)
    if (slots[i].block != NULL && i % KEEP_EVERY != 0) release(&slots[i]);
  sleep_ms(2 * DECAY_MS);
  free(malloc(2 * MIB)); /* a slow path, where memory goes back without a helper thread */
  sleep_ms(DECAY_MS);
  size_t idle_live = live_bytes(), idle_rss = rss_bytes();
  size_t at_peak = percent(peak_rss, start_bytes, peak_live);
  size_t idle = percent(idle_rss, start_bytes, idle_live);
  printf("%zu %zu %zu %zu %zu\n", maps, at_peak, idle, peak_live >> 20, idle_live >> 20);
  CHECK_MSG(maps < MAPS_MAX, "%zu mappings", maps);
  CHECK_MSG(at_peak <= strtoul(argv[2], NULL, 10), "%zu %% of what is live at the peak", at_peak);
  CHECK_MSG(idle <= strtoul(argv[3], NULL, 10), "%zu %% of what is live after idleness", idle);
  shadow_release_all();
  return 0;
}
