/* Allocates blocks of one size until NULL under a limit, frees them, and does so again.
 * Arguments: `as` or `data` (RLIMIT_AS, RLIMIT_DATA), the limit in MiB, the block size.
 *
 * Failure is NULL and ENOMEM; no block is harmed; a full heap still serves after a few frees; and
 * when all is free, at least 80 % can be had again, of this size and of others. */
#include "api/sizes.h"
#include "failure/chain.h"
#include "failure/limit.h"

static void check_other_calls_fail_too(size_t size) {
  char *block = malloc(16); /* may or may not be there */
  if (block != NULL) block[0] = 'k';
  CHECK_FAILS(realloc(block, GIB * 16), ENOMEM);
  CHECK_FAILS(calloc(GIB, 16), ENOMEM);
  void *out = &out;
  CHECK(posix_memalign(&out, MIB, GIB * 16) == ENOMEM && out == &out);
  CHECK(block == NULL || block[0] == 'k');
  free(block);
  if (size > MIB) { /* little is left, if the last block of this size did not fit */
    return;
  }
  void *large = malloc(64 * MIB);
  CHECK(large == NULL);
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  size_t limit_bytes = strtoul(argv[2], NULL, 10) * MIB, size = strtoul(argv[3], NULL, 10);
  limit_and_restart(argv, strcmp(argv[1], "as") == 0 ? RLIMIT_AS : RLIMIT_DATA, limit_bytes);
  chain_link *chain = NULL;

  size_t first = chain_grow(&chain, size), least_percent = limit_bytes >= 256 * MIB ? 60 : 25;
  CHECK_MSG(first * size >= limit_bytes / 100 * least_percent, "only %zu blocks", first);
  check_other_calls_fail_too(size);
  chain_thin(&chain, size, 2); /* half of them, evenly spread */
  size_t again = chain_grow(&chain, size);
  CHECK_MSG(again >= first / 2 * 8 / 10, "%zu after %zu of %zu were freed", again, first / 2,
            first);
  chain_free(&chain, size);

  again = chain_grow(&chain, size);
  CHECK_MSG(again >= first * 8 / 10, "%zu after all %zu were freed", again, first);
  chain_free(&chain, size);

  /* Not a power of two: those take 64 KiB of addresses more, as room for their colour. */
  size_t other_size = size < 32 * KIB ? 240 * KIB : 1000;
  again = chain_grow(&chain, other_size);
  CHECK_MSG(again * other_size >= first * size / 10 * 8, "%zu blocks of %zu bytes after %zu of %zu",
            again, other_size, first, size);
  chain_free(&chain, other_size);
  return 0;
}
