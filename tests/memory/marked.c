/* A program tells the kernel something about its Big blocks (MADV_DONTFORK, mlock, mprotect ...)
 * and frees them as they are. Blocks that are made of this memory afterwards are as fresh memory.
 * argv[1] says how the blocks come to be free. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "api/check.h"
#include "api/sizes.h"
#include "ways.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

enum { PAGE_BYTES = 4096, NEXT_BYTES = 1000000, NEXT_MAX = 64 };
static const size_t big_bytes = 3 * MIB;

/* ---- what the kernel knows of an address ----------------------------------------------------- */

static char smaps[4 << 20];

static void read_smaps(void) {
  int file = open("/proc/self/smaps", O_RDONLY);
  size_t length = 0;
  for (ssize_t got; (got = read(file, smaps + length, sizeof smaps - 1 - length)) > 0;)
    length += (size_t)got;
  smaps[length] = 0;
  close(file);
}

/* `text` is the mapping's first line, and what follows. */
static void require_unmarked(const char *text, unsigned mark) {
  static const char *const flags[] = {" dc ", " wf ", " dd ", " lo ",
                                      " mg ", " rr ", " sr ", " hg "};
  const char *line = MUST(strstr(text, "VmFlags:")), *name = strstr(text, "[anon:");
  char copy[256];
  snprintf(copy, sizeof copy, "%.*s ", (int)strcspn(line, "\n"), line);
  for (size_t i = 0; i < COUNT_OF(flags); i++)
    CHECK_MSG(!strstr(copy, flags[i]), "after mark %u:%s", mark, copy);
  CHECK_MSG(strstr(copy, " wr "), "after mark %u:%s", mark, copy);
  CHECK_MSG(!name || name > strchr(text, '\n'), "after mark %u: a name", mark);
}

/* All mappings of a block. */
static void require_block_unmarked(const char *block, size_t bytes, unsigned mark) {
  uintptr_t first = (uintptr_t)block, last = first + bytes - 1;
  size_t found = 0;
  for (const char *line = smaps; *line; line += strcspn(line, "\n") + 1) {
    char *rest;
    uintptr_t begin = strtoul(line, &rest, 16),
              end = *rest == '-' ? strtoul(rest + 1, NULL, 16) : 0;
    if (begin > last || end <= first) continue;
    require_unmarked(line, mark);
    found++;
  }
  CHECK(found > 0);
}

/* ---- marks ----------------------------------------------------------------------------------- */

static int name_it(void *begin, size_t bytes) {
  return prctl(PR_SET_VMA, 0, (unsigned long)begin, bytes, (unsigned long)"a name");
}

/* Pages that a part of the block lies in, as mlock does; whether the kernel has such a mark. */
static bool mark(unsigned which, char *block, size_t bytes) {
  static const int advices[] = {MADV_DONTFORK, 18 /* MADV_WIPEONFORK */, MADV_DONTDUMP,
                                MADV_RANDOM,   MADV_SEQUENTIAL,          MADV_MERGEABLE,
                                MADV_HUGEPAGE};
  char *begin = block - (uintptr_t)block % PAGE_BYTES;
  bytes = (size_t)(block + bytes - begin + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  if (which < COUNT_OF(advices)) return madvise(begin, bytes, advices[which]) == 0;
  switch (which - COUNT_OF(advices)) {
    case 0: return mlock(begin, bytes) == 0;
    case 1: return mprotect(begin, bytes, PROT_READ) == 0;
    case 2: return mprotect(begin, bytes, PROT_NONE) == 0;
    default: return name_it(begin, bytes) == 0;
  }
}
enum { MARKS = 11, PLAIN_MARKS = 8 /* the block stays writable */ };

/* Blocks that take what was freed: each of their pages is as fresh memory. */
static void require_fresh(unsigned which) {
  char *next[NEXT_MAX];
  for (size_t i = 0; i < NEXT_MAX; i++) next[i] = MUST(malloc(NEXT_BYTES));
  read_smaps();
  for (size_t i = 0; i < NEXT_MAX; i++) require_block_unmarked(next[i], NEXT_BYTES, which);
  for (size_t i = 0; i < NEXT_MAX; i++) free(next[i]);
}

static void free_marked(unsigned which, char *block, size_t bytes) {
  memset(block, 1, bytes);
  mark(which, block, bytes);
  free(block);
}

WAY(whole) {
  for (unsigned which = 0; which < MARKS; which++) {
    free_marked(which, MUST(malloc(big_bytes)), big_bytes);
    require_fresh(which);
    void *aligned =
        MUST(aligned_alloc(PAGE_BYTES, 2 * MIB)); /* its last page is the range's but one */
    free_marked(which, aligned, 2 * MIB);
    require_fresh(which);
  }
}

/* Every size that ends elsewhere in its last granule. */
WAY(any_size) {
  for (size_t bytes = big_bytes - 64 * KIB - 100; bytes < big_bytes; bytes += KIB) {
    char *blocks[16]; /* at as many colours */
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
      blocks[i] = MUST(malloc(bytes));
      mark(0, blocks[i], bytes);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) free(blocks[i]);
  }
  require_fresh(0);
}

/* Neighbours have the same mark, and live. */
WAY(between_marked_ones) {
  for (unsigned which = 0; which < MARKS; which++) {
    char *blocks[9];
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
      blocks[i] = MUST(malloc(big_bytes));
      mark(which, blocks[i], big_bytes);
    }
    for (size_t i = 1; i < COUNT_OF(blocks); i += 2) free(blocks[i]);
    require_fresh(which);
    for (size_t i = 0; i < COUNT_OF(blocks); i += 2) free(blocks[i]);
    require_fresh(which);
  }
}

WAY(a_part) {
  for (unsigned which = 0; which < MARKS; which++) {
    char *block = MUST(malloc(big_bytes));
    mark(which, block + MIB, PAGE_BYTES);
    free(block);
    require_fresh(which);
  }
}

/* Both parts, though the first becomes a block by itself. */
WAY(shrunk) {
  for (unsigned which = 0; which < PLAIN_MARKS; which++) {
    char *block = MUST(malloc(8 * MIB));
    mark(which, block, 8 * MIB);
    block = MUST(realloc(block, big_bytes));
    free(block);
    require_fresh(which);
    char *steps = MUST(malloc(8 * MIB));
    mark(which, steps, 8 * MIB);
    for (size_t bytes = 8 * MIB; bytes > 2 * MIB; bytes -= 100 * KIB)
      steps = MUST(realloc(steps, bytes));
    require_fresh(which);
    free(steps);
    require_fresh(which);
  }
}

/* Its pages move, and with them what the kernel knows of them. */
WAY(moved) {
  for (unsigned which = 0; which < PLAIN_MARKS; which++) {
    char *block = MUST(malloc(8 * MIB)), *wall = MUST(malloc(2 * MIB));
    memset(block, 1, 8 * MIB);
    mark(which, block, 8 * MIB);
    block = MUST(realloc(block, 17 * MIB));
    require_fresh(which); /* where they were */
    free(block);
    free(wall);
    require_fresh(which);
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  if (sysconf(_SC_PAGESIZE) > PAGE_BYTES)
    return 0; /* a page beside each block is more than it has (docs/RELIABILITY.md) */
  CHECK(run_way(argv[1]));
  return 0;
}
