/* mallinfo2 and mallinfo: what is in use and what is free add up, follow what the program does at
 * once, and are exact for the calling thread: blocks in its caches are free.  Threads that ended
 * leave nothing behind in use. */

#include "api/sizes.h"
#include "concurrency/threads.h"

enum { BLOCKS = 4000, BLOCK_BYTES = 100, THREADS = 1000 };

static struct mallinfo2 look(void) {
  struct mallinfo2 info = mallinfo2();
  CHECK_MSG(info.arena == info.uordblks + info.fordblks, "%zu = %zu + %zu", info.arena,
            info.uordblks, info.fordblks);
  CHECK(info.ordblks >= 1);
  CHECK(info.keepcost <= info.fordblks);
  CHECK(info.smblks == 0 && info.fsmblks == 0 && info.usmblks == 0);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  struct mallinfo old = mallinfo();
#pragma GCC diagnostic pop
  CHECK((size_t)old.uordblks == info.uordblks && (size_t)old.ordblks == info.ordblks);
  CHECK((size_t)old.arena == info.arena && (size_t)old.hblkhd == info.hblkhd);
  CHECK((size_t)old.fordblks == info.fordblks && (size_t)old.hblks == info.hblks);
  return info;
}

static void count_small_blocks(void) {
  static void *blocks[BLOCKS];
  struct mallinfo2 before = look();
  for (size_t i = 0; i < BLOCKS; i++) CHECK((blocks[i] = malloc(BLOCK_BYTES)) != NULL);
  struct mallinfo2 full = look();
  size_t more = full.uordblks - before.uordblks;
  CHECK_MSG(more >= BLOCKS * BLOCK_BYTES && more <= BLOCKS * BLOCK_BYTES * 3 / 2, "%zu", more);
  for (size_t i = 0; i < BLOCKS; i += 2) free(blocks[i]);
  struct mallinfo2 half = look();
  CHECK_MSG(full.uordblks - half.uordblks >= more / 2 - KIB, "%zu", half.uordblks);
  CHECK_MSG(half.ordblks >= full.ordblks + BLOCKS / 2 - 100, "from %zu to %zu free blocks",
            full.ordblks, half.ordblks);
  for (size_t i = 1; i < BLOCKS; i += 2) free(blocks[i]);
  struct mallinfo2 after = look();
  CHECK_MSG(after.uordblks <= before.uordblks + KIB, "%zu", after.uordblks - before.uordblks);
}

/* A block with pages of its own counts in hblkhd alone, as in glibc: in hardened mode from some 33
 * KiB on, and guarded ones, as those pages. */
static size_t bytes_in_use(void) {
  struct mallinfo2 info = look();
  return info.uordblks + info.hblkhd;
}

static void count_steps(void) {
  for (size_t size = 160; size <= 512 * KIB; size += size < 3200 ? 160 : size) {
    size_t before = bytes_in_use();
    void *block = malloc(size);
    size_t more = bytes_in_use() - before;
    size_t most = getenv("HAKMEM_GUARD") && size < 2 * KIB ? 4 * KIB : size * 2;
    CHECK_MSG(more >= size && more <= most, "%zu for a block of %zu", more, size);
    free(block);
    CHECK(bytes_in_use() == before);
  }
}

static void count_a_big_block(void) {
  struct mallinfo2 before = look();
  void *block = malloc(5 * MIB);
  struct mallinfo2 during = look();
  CHECK(during.hblks == before.hblks + 1);
  CHECK(during.hblkhd >= before.hblkhd + 5 * MIB && during.hblkhd <= before.hblkhd + 6 * MIB);
  CHECK(during.uordblks == before.uordblks); /* one or the other, as in glibc */
  block = realloc(block, 3 * MIB);
  CHECK(look().hblks == before.hblks + 1);
  free(block);
  CHECK(look().hblks == before.hblks && look().hblkhd == before.hblkhd);
}

static void *work(void *unused) {
  (void)unused;
  free(malloc(32));
  return malloc(32);
}

static void count_threads(void) {
  size_t before = look().uordblks;
  for (size_t i = 0; i < THREADS; i++) {
    void *block;
    CHECK(pthread_join(thread_start(work, NULL), &block) == 0);
    free(block);
  }
  size_t after = look().uordblks;
  CHECK_MSG(after <= before + 16 * KIB, "%zu bytes in use after the threads", after - before);
}

int main(void) {
  free(malloc(1));
  CHECK(look().uordblks <= 64 * KIB);
  count_small_blocks();
  count_steps();
  count_a_big_block();
  count_threads();
  errno = CHECK_ERRNO_MARK;
  malloc_trim(0);
  look();
  CHECK(errno == CHECK_ERRNO_MARK);
  return 0;
}
