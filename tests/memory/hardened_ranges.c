/* Blocks above 32 KiB in hardened mode: what is freed waits closed, and costs next to nothing; what
 * grows and shrinks by small steps is not copied at each.  argv[1] says what.  Page faults stand
 * for the time. */
#include "api/sizes.h"
#include "memory/rss.h"

enum { STEPS = 192, COSTS_MAX_MIB = 16 };

/* Asked by the kernel: no fault. */
static void require_closed(volatile const char *address) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  CHECK_MSG(write(ends[1], (const char *)address, 1) != 1, "%p is open", (const void *)address);
  close(ends[0]);
  close(ends[1]);
}

static void require_content(const char *block, size_t mib) {
  for (size_t i = 0; i < mib; i++)
    CHECK(block[i * MIB] == (char)(i + 1) && block[(i + 1) * MIB - 1] == (char)(i + 1));
}

static void vector(void) {
  size_t before = faults(), pages = STEPS * MIB / (size_t)sysconf(_SC_PAGESIZE);
  volatile char *stale = NULL;
  char *block = NULL;
  for (size_t mib = 1; mib <= STEPS; mib++) {
    stale = block;
    block = realloc(block, mib * MIB);
    CHECK(block != NULL && malloc_usable_size(block) == mib * MIB);
    if (stale && stale != block) require_closed(stale);
    memset(block + (mib - 1) * MIB, (int)mib, MIB);
  }
  require_content(block, STEPS);
  for (size_t mib = STEPS - 1; mib > 0; mib--) {
    char *smaller = realloc(block, mib * MIB);
    CHECK(smaller == block);
    require_closed(block + (mib + 1) * MIB - 1);
  }
  require_content(block, 1);
  free(block);
  require_closed(block);
  CHECK_MSG(faults() - before < 3 * pages, "%zu page faults", faults() - before);
}

static size_t status_mib(const char *format) {
  char line[256];
  size_t kib = 0;
  FILE *file = MUST(fopen("/proc/self/status", "r"));
  while (fgets(line, sizeof line, file) && sscanf(line, format, &kib) != 1) {
  }
  fclose(file);
  return kib * KIB / MIB;
}

static void sparse(size_t bytes, size_t times) {
  size_t before = faults();
  for (size_t i = 0; i < times; i++) {
    volatile char *block = MUST(malloc(bytes));
    block[i * MIB % bytes] = 1;
    free((char *)block);
    require_closed(block);
  }
  size_t costs = status_mib("VmPTE: %zu") + status_mib("VmRSS: %zu");
  CHECK_MSG(costs <= COSTS_MAX_MIB, "%zu MiB of pages and page tables", costs);
  CHECK_MSG(faults() - before < 2000 + 16 * times, "%zu page faults", faults() - before);
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  if (strcmp(arguments[1], "vector") == 0) {
    vector();
  } else {
    sparse(GIB, 400);
    sparse(16 * GIB, 64);
  }
  return 0;
}
