/* src/config/bytes: sizes as people write them. */
#include "config/options.h"

#include "unit.h"

#define K UINT64_C(1024)
#define M (K * K)
#define G (K * M)

TEST(sizes) {
  static const struct {
    const char *text;
    uint64_t bytes;
  } sizes[] = {
      {"0", 0},
      {"12345", 12345},
      {"7B", 7},
      {"3K", 3 * K},
      {"3k", 3 * K},
      {"3KiB", 3 * K},
      {"3KB", 3000},
      {"500M", 500 * M},
      {"500m", 500 * M},
      {"500MiB", 500 * M},
      {"500mib", 500 * M},
      {"500MB", 500000000},
      {"500mb", 500000000},
      {"2G", 2 * G},
      {"2.5G", 2 * G + G / 2},
      {"2.5GiB", 2 * G + G / 2},
      {"2.5GB", 2500000000},
      {"0.5K", 512},
      {"1.0K", 1024},
      {"0.000001G", 1073},
      {"1.999999T", 2 * K * G - 1099512},
      {"0.03125G", 32 * M},
      {"33.554432MB", 32 * M},
      {"0.123456789G", 132560717},
      {"3T", 3 * K * G},
      {"3TB", UINT64_C(3000000000000)},
      {"18446744073709551615", UINT64_MAX},
      {"16777215T", UINT64_C(16777215) << 40},
  };
  for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    uint64_t bytes = 1;
    if (!bytes_parse(sizes[index].text, &bytes) || bytes != sizes[index].bytes)
      fail_msg("%s: %llu", sizes[index].text, (unsigned long long)bytes);
  }
}

TEST(nonsense) {
  static const char *const texts[] = {"",
                                      " ",
                                      "x",
                                      "-1",
                                      "+1",
                                      "K",
                                      "M5",
                                      ".5G",
                                      "5.",
                                      "5.G",
                                      "1.5",
                                      "1.5B",
                                      "5Q",
                                      "5 M",
                                      "5M ",
                                      "5MM",
                                      "5MiBs",
                                      "5Mi",
                                      "5iB",
                                      "5BB",
                                      "5KBB",
                                      "1.2.3M",
                                      "1,5M",
                                      "0x10",
                                      "1e9",
                                      "50%",
                                      "5K%",
                                      "1.1234567890G",
                                      "18446744073709551616",
                                      "16777216T",
                                      "17592186044416.5M",
                                      "99999999999999999999999999",
                                      "5P",
                                      "5Mb/s"};
  for (size_t index = 0; index < sizeof texts / sizeof texts[0]; index++) {
    uint64_t bytes = 1;
    if (bytes_parse(texts[index], &bytes))
      fail_msg("%s: %llu", texts[index], (unsigned long long)bytes);
  }
}
