/* argv[1] MiB of address space, spent on blocks that are hardly touched, of 300 KiB and of 5
 * MiB. */
#include "api/sizes.h"
#include "failure/chain.h"
#include "failure/limit.h"

int main(int argc, char **argv) {
  CHECK(argc == 2);
  size_t limit_bytes = strtoul(argv[1], NULL, 10) * MIB;
  limit_and_restart(argv, RLIMIT_AS, limit_bytes);
  chain_link *chain = NULL;
  for (int round = 0; round < 3; round++) {
    size_t large = chain_grow(&chain, 300 * KIB);
    CHECK_MSG(large * 300 * KIB >= limit_bytes / 2, "round %d: %zu blocks", round, large);
    chain_free(&chain, 300 * KIB);
    size_t big = chain_grow(&chain, 5 * MIB);
    CHECK_MSG(big * 5 * MIB >= limit_bytes / 2, "round %d: %zu blocks", round, big);
    chain_free(&chain, 5 * MIB);
  }
  return 0;
}
