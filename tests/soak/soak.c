/* A mixed load that goes on for a long time, round after round; memory must not grow.
 *
 * A round: several generations of threads make random calls against a shadow model that they share
 * (shadow.h), so that blocks are handed over and outlive their threads; every thread is new, and
 * their number varies.  Meanwhile the process forks, and the child checks, frees and allocates.
 * Then all is freed, by a thread that made none of it, and the process idles until no more memory
 * goes back: what is resident then is the round's sample.  The drift is what the samples of the
 * second half rise from their first to their last, by the median slope (Theil's): one sample that a
 * busy machine spoiled does not move it. (In the first half hakmem's own records are touched for
 * the first time, which stay: fewer and fewer, with every round.)
 *   argv[1] seconds, argv[2] seed.  Prints rounds, calls, forks, resident KiB and drift in KiB.
 * The test sets HAKMEM_DECAY_MS=50. */
#include <dlfcn.h>
#include <time.h>

#include "concurrency/shadow.h"
#include "memory/blocks.h"

enum {
  THREADS_MAX = 8,
  LIVES = 3,
  STEPS = 3000,
  DECAY_MS = 50,
  CHILD_LIMIT_S = 60,
  CHILD_STEPS = 500
};
enum { SAMPLES_MAX = 100000, ROUNDS_MIN = 16, IDLE_WAITS_MAX = 50 };
/* In a short run the records still grow in the second half; what leaks two bytes a call rises
 * faster. */
enum { ROUNDS_LONG = 100, DRIFT_MAX_KIB = 256, SHORT_DRIFT_MAX_KIB = 512 };

static size_t samples_kib[SAMPLES_MAX]; /* not from malloc: it would grow what is measured */

static void *live(void *seed) {
  uint64_t random = random_seed((size_t)seed);
  for (size_t i = 0; i < STEPS; i++) shadow_step(&random);
  return NULL;
}

/* The child has one thread; slots that others held at the fork are not its to touch. */
static void child(size_t seed) {
  alarm(CHILD_LIMIT_S);
  uint64_t random = random_seed(seed);
  for (size_t i = 0; i < CHILD_STEPS; i++) shadow_step(&random);
  thread_join(thread_start(live, (void *)seed));
  _exit(0);
}

static void fork_once(size_t seed) {
  pid_t pid = fork();
  if (pid == 0) child(seed);
  child_join(pid);
}

static void *release_all(void *unused) {
  shadow_release_all();
  return unused;
}

static size_t play_round(size_t seed, uint64_t *random) {
  size_t calls = 0;
  for (size_t life = 0; life < LIVES; life++) {
    pthread_t running[THREADS_MAX];
    size_t threads = random_between(random, 2, THREADS_MAX);
    for (size_t i = 0; i < threads; i++)
      running[i] = thread_start(live, (void *)(seed + life * THREADS_MAX + i));
    if (life == LIVES / 2) fork_once(seed);
    for (size_t i = 0; i < threads; i++) thread_join(running[i]);
    calls += threads * STEPS;
  }
  thread_run(release_all, NULL);
  return calls;
}

typedef size_t purge_function(bool force);

/* Until nothing went back in three waits in a row.  What is old goes then, if no helper thread has
 * done it, or has had no processor; by hak_purge, as that takes nothing.  A block of 2 MiB that was
 * taken and freed here kept up to 4 MiB: it was cut out of a freed range, made all of that young
 * again when it came back, and came every two decay times, which is the decay time while a busy
 * program wants back what has gone (src/reclaim/regret.h).  Such a sample looked like a leak. */
static void idle(purge_function *purge) {
  size_t least = SIZE_MAX;
  for (int still = 0, waits = 0; still < 3 && waits < IDLE_WAITS_MAX; waits++) {
    sleep_ms(2 * DECAY_MS);
    purge(false);
    size_t now = rss_bytes();
    still = now < least ? 0 : still + 1;
    least = now < least ? now : least;
  }
}

static int compare_doubles(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

/* Theil's median slope, from pairs that are half of the samples apart, times the samples'
 * length. */
static double drift_kib(const size_t *samples, size_t count) {
  static double rises[SAMPLES_MAX];
  size_t apart = count / 2, pairs = count - apart;
  for (size_t i = 0; i < pairs; i++) rises[i] = (double)samples[i + apart] - (double)samples[i];
  qsort(rises, pairs, sizeof *rises, compare_doubles);
  return rises[pairs / 2] / (double)apart * (double)(count - 1);
}

static double now_s(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  double end_s = now_s() + strtod(argv[1], NULL);
  size_t seed = strtoul(argv[2], NULL, 10), calls = 0, rounds = 0;
  uint64_t random = random_seed(seed);
  purge_function *purge = (purge_function *)dlsym(RTLD_DEFAULT, "hak_purge");
  CHECK(purge != NULL);
  for (; rounds < SAMPLES_MAX && (now_s() < end_s || rounds < ROUNDS_MIN); rounds++) {
    calls += play_round((seed << 32) + rounds * 1000, &random);
    idle(purge);
    samples_kib[rounds] = rss_bytes() / KIB;
  }
  /* Memory that goes back later is not lost: a loaded machine's rounds by age come late. */
  for (size_t i = rounds - 1; i-- > 0;)
    if (samples_kib[i] > samples_kib[i + 1]) samples_kib[i] = samples_kib[i + 1];
  double drift = drift_kib(samples_kib + rounds / 2, rounds - rounds / 2);
  printf("%zu rounds, %zu calls, %zu forks, %zu KiB resident, %.0f KiB drift\n", rounds, calls,
         rounds, samples_kib[rounds - 1], drift);
  if (getenv("SOAK_SAMPLES") != NULL)
    for (size_t i = 0; i < rounds; i++) printf("%zu\n", samples_kib[i]);
  fflush(stdout); /* the figures come before any complaint */
  CHECK_MSG(drift < (rounds < ROUNDS_LONG ? SHORT_DRIFT_MAX_KIB : DRIFT_MAX_KIB),
            "%.0f KiB more at the end", drift);
  return 0;
}
