/* Joins the cgroup whose cgroup.procs is argv[1], whose memory limit is argv[2] MiB, and starts
 * again there. `percent`: HAKMEM_LIMIT_HARD=50%: half of it is served, and no more. `keen`: without
 * any option a program whose live memory changes its kind lives in five eighths of the limit,
 * though what it frees would not fit beside what it uses next. */
#include "api/sizes.h"
#include "failure/chain.h"
#include "memory/rss.h"

static void join_and_restart(char **argv) {
  if (getenv("TEST_IS_LIMITED") == NULL) {
    CHECK(setenv("TEST_IS_LIMITED", "1", 1) == 0);
    int procs = open(argv[1], O_WRONLY | O_CLOEXEC);
    CHECK(procs >= 0 && write(procs, "0", 1) == 1);
    execv("/proc/self/exe", argv);
    CHECK(!"execv returned");
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  join_and_restart(argv);
  size_t limit_bytes = strtoul(argv[2], NULL, 10) * MIB;
  if (strcmp(argv[3], "percent") == 0) {
    chain_link *chain = NULL;
    size_t bytes = chain_grow(&chain, 50000) * 50000;
    CHECK_MSG(bytes >= limit_bytes / 10 * 3 && bytes <= limit_bytes / 2, "%zu bytes", bytes);
    chain_free(&chain, 50000);
    return 0;
  }
  static const size_t sizes[] = {3 * MIB, 1000, 200 * KIB, 20000, 5 * MIB, 64, 900 * KIB};
  for (size_t i = 0; i < 3 * sizeof sizes / sizeof sizes[0]; i++)
    chain_swing(sizes[i % (sizeof sizes / sizeof sizes[0])], limit_bytes / 8 * 5);
  return 0;
}
