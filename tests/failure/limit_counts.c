/* HAKMEM_LIMIT_HARD is argv[1] MiB.  Blocks of any size can be had until they take most of it, all
 * touched; what is resident never passes it; half of them freed, as many more can be had, of this
 * size and of the next. */
#include "api/sizes.h"
#include "failure/chain.h"
#include "memory/rss.h"

static size_t limit_bytes, base_bytes, page_bytes;

static void check_resident(size_t size) {
  size_t now = rss_bytes(), held = now > base_bytes ? now - base_bytes : 0;
  CHECK_MSG(held <= limit_bytes + MIB, "%zu KiB resident with blocks of %zu", held / KIB, size);
}

/* What counts as a block's: from 64 KiB on the pages that it lies in, wherever in the first 4 KiB
 * it begins; below its class, at most a third more. */
static size_t counted_bytes(size_t size) {
  if (size < 64 * KIB) return size * 4 / 3;
  return (size + 4 * KIB + page_bytes - 1) / page_bytes * page_bytes;
}

static void fill(size_t size, size_t next_size) {
  chain_link *chain = NULL, *others = NULL;
  size_t got = chain_grow_touched(&chain, size);
  size_t share = limit_bytes / 100 * (size >= 64 * KIB ? 92 : 90);
  size_t least = share * size / counted_bytes(size);
  CHECK_MSG((got + 1) * size >= least, "%zu KiB in blocks of %zu, at least %zu expected",
            got * size / KIB, size, least / KIB);
  check_resident(size);
  chain_thin(&chain, size, 2);
  size_t again = chain_grow_touched(&chain, size);
  CHECK_MSG(again >= got / 2 * 9 / 10, "%zu of %zu blocks of %zu again", again, got / 2, size);
  check_resident(size);
  chain_thin(&chain, size, 2);
  chain_grow_touched(&others, next_size);
  check_resident(next_size);
  chain_free(&others, next_size);
  chain_free(&chain, size);
}

/* What malloc_usable_size offers counts; realloc to it, and beyond, counts more or is refused. */
static void use_usable_bytes(size_t size) {
  chain_link *chain = NULL;
  for (;;) {
    void *block = malloc(size);
    if (!block) break;
    size_t usable_bytes = malloc_usable_size(block);
    CHECK(usable_bytes >= size && realloc(block, usable_bytes) == block);
    memset(block, 1, usable_bytes);
    chain_link *link = block;
    link->next = chain;
    chain = link;
  }
  check_resident(size);
  for (chain_link *link = chain, *next, **at = &chain; link; link = next) {
    next = link->next;
    char *grown = realloc(link, size * 3 / 2);
    if (grown) {
      memset(grown + size, 1, size / 2);
      *at = link = (chain_link *)grown;
    }
    at = &link->next;
  }
  check_resident(size);
  while (chain) {
    chain_link *next = chain->next;
    free(chain);
    chain = next;
  }
}

int main(int argc, char **argv) {
  static const size_t sizes[] = {24,    1000,   5000,   33000,  49152,   65536,
                                 70000, 100000, 131072, 200000, 1 << 20, 3000000};
  CHECK(argc == 2);
  limit_bytes = strtoul(argv[1], NULL, 10) * MIB;
  page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  base_bytes = rss_bytes();
  for (size_t i = 0; i < COUNT_OF(sizes); i++) fill(sizes[i], sizes[(i + 5) % COUNT_OF(sizes)]);
  for (size_t i = 3; i < COUNT_OF(sizes); i++) use_usable_bytes(sizes[i]);
  for (size_t i = COUNT_OF(sizes); i-- > 0;) fill(sizes[i], sizes[(i + 3) % COUNT_OF(sizes)]);
  return 0;
}
