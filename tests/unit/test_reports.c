/* src/observe: the snapshot and the reports made of it. */
#include "observe/reports.h"

#include <ctype.h>

#include "heaps.h"
#include "map/size_class.h"

enum { REPORT_BYTES = 1 << 17 };
static char report[REPORT_BYTES];

BEFORE(child) { start_library(); }

/* ---- a strict reader of JSON: returns where the value ends, NULL when it is none ------------- */

static const char *json_value(const char *at);

static const char *json_string(const char *at) {
  if (*at++ != '"') return NULL;
  while (*at && *at != '"' && *at != '\\' && (unsigned char)*at >= ' ') at++;
  return *at == '"' ? at + 1 : NULL;
}

static const char *json_number(const char *at) {
  if (!isdigit((unsigned char)*at)) return NULL;
  if (*at == '0' && isdigit((unsigned char)at[1])) return NULL;
  while (isdigit((unsigned char)*at)) at++;
  return at;
}

static const char *json_members(const char *at, char close, bool has_keys) {
  if (*++at == close) return at + 1;
  for (;; at++) {
    if (has_keys && (!(at = json_string(at)) || *at++ != ':')) return NULL;
    if (!(at = json_value(at))) return NULL;
    if (*at == close) return at + 1;
    if (*at != ',') return NULL;
  }
}

static const char *json_value(const char *at) {
  if (*at == '{') return json_members(at, '}', true);
  if (*at == '[') return json_members(at, ']', false);
  return *at == '"' ? json_string(at) : json_number(at);
}

/* The number behind "key": in the report. */
static uint64_t figure(const char *key) {
  char quoted[80];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(report, quoted);
  REQUIRE(at);
  return strtoull(at + strlen(quoted), NULL, 10);
}

CHILD_TEST(write_json) {
  void *big = must_malloc(3 << 20), *large = must_malloc(100000);
  for (unsigned index = 0; index < 1000; index++) must_malloc(100);
  size_t length = hak_stats_json(report, sizeof report);
  REQUIRE(length < sizeof report && strlen(report) == length);
  REQUIRE(json_value(report) == report + length);
  REQUIRE(figure("pid") == (uint64_t)getpid());
  REQUIRE(figure("big_allocs") >= 1 && figure("big_live_bytes") == hak_good_size(3 << 20));
  REQUIRE(figure("large_allocs") == 1 && figure("large_live_bytes") == 126976);
  REQUIRE(figure("refilled_blocks") >= 1000 && figure("slab_out_bytes") >= 112000);
  REQUIRE(figure("mapped_bytes") >= (4 << 20) && figure("metadata_bytes") > 0);
#define COUNTER(name, unit, meaning) figure(#name);
#define UNSTABLE_COUNTER(name, unit, meaning) figure("unstable_" #name);
#include "base/counters.def"
  unsigned classes = 0;
  for (const char *at = report; (at = strstr(at, "\"block_bytes\":")); at++) classes++;
  REQUIRE(classes == CLASS_COUNT - FITTED_CLASS_COUNT);
  hak_free(big);
  hak_free(large);
}

/* A buffer of any size: never written past, always told how much is wanted. */
CHILD_TEST(cut_json) {
  size_t whole = hak_stats_json(NULL, 0);
  for (size_t bytes = 1; bytes < whole; bytes += 1 + bytes / 3) {
    memset(report, '#', sizeof report);
    REQUIRE(hak_stats_json(report, bytes) == whole);
    REQUIRE(strlen(report) == bytes - 1 && report[bytes] == '#');
  }
  REQUIRE(hak_stats_json(report, whole + 1) == whole);
  REQUIRE(json_value(report) == report + whole);
}

CHILD_TEST(write_text) {
  must_malloc(100);
  hak_stats_print(2);
  REQUIRE(strncmp(os_fake.written, "hakmem 0.", 9) == 0);
  REQUIRE(strstr(os_fake.written, "\nmemory (") && strstr(os_fake.written, "  refills "));
  REQUIRE(!strstr(os_fake.written, "big_allocs")); /* what is 0 is left out */
}

CHILD_TEST(write_acquisitions) {
  must_malloc(100);
  options.shared_pool_lock_stats = true;
  reports_at_exit();
  REQUIRE(strncmp(os_fake.written, "hakmem: shared pool slow-path acquisitions: ", 44) == 0);
  REQUIRE(strstr(os_fake.written, "acquire_os") && strstr(os_fake.written, "%  "));
}

CHILD_TEST(write_where_it_cannot) {
  options.stats = "json:/nowhere/at/all.json";
  reports_at_exit();
  REQUIRE(strcmp(os_fake.written,
                 "hakmem: warning: HAKMEM_STATS: cannot write /nowhere/at/all.json; no report\n") ==
          0);
  os_fake_forget_written();
  options.stats = "xml";
  reports_at_exit();
  REQUIRE(strstr(os_fake.written,
                 "HAKMEM_STATS=\"xml\" is not 1, json, text:FILE or json:FILE; ignored\n"));
  os_fake_forget_written();
  options.stats = "0";
  reports_at_exit();
  REQUIRE(os_fake.written_bytes == 0);
}

CHILD_TEST(write_a_file) {
  char path[] = "/tmp/hakmem-test-XXXXXX", option[64];
  int file = mkstemp(path);
  snprintf(option, sizeof option, "json:%s", path);
  options.stats = option;
  reports_at_exit();
  ssize_t length = read(file, report, sizeof report - 1);
  unlink(path);
  REQUIRE(length > 0 && json_value(report) == report + length - 1);
  REQUIRE(report[length - 1] == '\n');
}
