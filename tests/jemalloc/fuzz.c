/* Any names, MIBs and sizes: each call returns an errno of jemalloc's manual, and writes no byte
 * beyond the room. Arguments: a seed, the number of calls, and names to begin with. */
#include "api/random.h"
#include "jemalloc/mallctl.h"

static bool is_known(int error) {
  return error == 0 || error == EINVAL || error == ENOENT || error == EPERM || error == EAGAIN ||
         error == EFAULT;
}

int main(int argc, char **argv) {
  uint64_t random = random_seed(strtoull(argv[1], NULL, 10));
  CHECK(argc > 3 && malloc(1));
  for (unsigned long call = strtoul(argv[2], NULL, 10); call; call--) {
    char name[96];
    unsigned char room[32], given[8] = {0};
    size_t mib[COMPONENTS], length = random_below(&random, COMPONENTS + 1);
    size_t bytes = random_below(&random, 17), length_before = length;
    snprintf(name, sizeof name, "%s", argv[3 + random_below(&random, (size_t)argc - 3)]);
    for (size_t changes = random_below(&random, 3); changes; changes--)
      name[random_below(&random, strlen(name))] = (char)(1 + random_below(&random, 255));
    memset(room, 0xA5, sizeof room);
    memset(mib, 0x77, sizeof mib);
    bool reads = random_below(&random, 2), writes = random_below(&random, 2);
    size_t room_bytes = bytes, given_bytes = random_below(&random, 10);
    CHECK(is_known(mallctl(name, reads ? room : NULL, reads ? &room_bytes : NULL,
                           writes ? given : NULL, writes ? given_bytes : 0)));
    CHECK(room_bytes <= bytes);
    for (size_t at = bytes; at < sizeof room; at++) CHECK(room[at] == 0xA5);
    int error = mallctlnametomib(name, mib, &length);
    CHECK(is_known(error) && length <= length_before);
    if (error) continue;
    if (length) mib[random_below(&random, length)] += random_below(&random, 3);
    room_bytes = bytes;
    CHECK(is_known(mallctlbymib(mib, length, room, &room_bytes, NULL, 0)));
    for (size_t at = bytes; at < sizeof room; at++) CHECK(room[at] == 0xA5);
  }
  return 0;
}
