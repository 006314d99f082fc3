#include "config/limits.h"

#include "base/scan.h"
#include "config/options.h"
#include "os/os.h"
#include "report/report.h"

struct limits limits;

/* ---- the options ----------------------------------------------------------------------------- */

/* "1%" to "100%"; 0 when the text is not a percentage. */
static unsigned parse_percent(const char *text) {
  uint64_t percent;
  bool is_percentage = scan_number(&text, &percent) && text[0] == '%' && !text[1];
  return is_percentage && percent <= 100 ? (unsigned)percent : 0;
}

/* Dividing first loses precision only below a limit of 100 bytes. */
static uint64_t part_of_cgroup(const char *name, const char *text, unsigned percent) {
  uint64_t limit = os_cgroup_read()->memory_bytes;
  if (limit != OS_CGROUP_NONE) return limit / 100 * percent;
  report_line("warning: %s=%s: no cgroup memory limit found to take a percentage of; ignored", name,
              text);
  return 0;
}

/* A smaller limit is a mistake: hakmem's own records and a slab for each size take as much. */
#define LIMIT_LEAST_BYTES ((uint64_t)1 << 20)

static void warn_limit(const char *name, const char *value, const char *wrong, const char *holds) {
  report_line("warning: %s=\"%s\" %s; %s", name, value, wrong, holds);
}

/* The option's value; 0, after a warning, when it cannot be a limit. */
static uint64_t parse_limit(const char *name, const char *text) {
  uint64_t bytes;
  unsigned percent = parse_percent(text);
  if (percent) return part_of_cgroup(name, text, percent);
  const char *wrong = NULL;
  if (!bytes_parse(text, &bytes))
    wrong = "is not a size (500M, 500MiB, 500MB, 2.5G) or a percentage from 1% to 100%";
  else if (!bytes)
    wrong = "is zero, which would allow nothing";
  else if (bytes < LIMIT_LEAST_BYTES)
    wrong = "is less than 1 MiB, which hakmem needs for itself";
  if (!wrong) return bytes;
  warn_limit(name, text, wrong, "it does not hold");
  return 0;
}

/* A limit that cannot be reached is mostly a mistake in its unit. */
static void warn_if_beyond_all(const char *name, const char *text, uint64_t bytes) {
  uint64_t cgroup = os_cgroup_read()->memory_bytes, machine = os_memory_bytes();
  if (bytes <= cgroup && bytes <= machine) return;
  report_line("warning: %s=\"%s\" exceeds the %s of %zu MiB, which will be reached first", name,
              text, bytes > cgroup ? "cgroup's limit" : "machine's memory",
              (size_t)((bytes > cgroup ? cgroup : machine) >> 20));
}

static uint64_t read_limit(const char *name, const char *text) {
  uint64_t bytes = *text ? parse_limit(name, text) : 0;
  if (bytes) warn_if_beyond_all(name, text, bytes);
  return bytes;
}

void limits_read(void) {
  uint64_t soft = read_limit("HAKMEM_LIMIT_SOFT", options.limit_soft);
  limits.hard_bytes = read_limit("HAKMEM_LIMIT_HARD", options.limit_hard);
  if (soft && limits.hard_bytes && soft > limits.hard_bytes) {
    warn_limit("HAKMEM_LIMIT_SOFT", options.limit_soft,
               "exceeds HAKMEM_LIMIT_HARD, which will be reached first",
               "the hard limit alone holds");
    soft = 0;
  }
  store_relaxed(&limits.soft_bytes, soft);
  if (options.confined) os_confine(); /* after the limits, which may be in files */
}

/* ---- the cgroup ------------------------------------------------------------------------------ */

/* A program that may use a quarter of the time of the processors it sees usually starts a thread
 * for each of them, each with its caches: a quarter of the caches suffices for the work done. Not
 * less than a quarter: a batch must pay. */
enum { CACHE_CUT_MAX = LIMITS_WHOLE / 4 * 3 };

static uint32_t cache_cut_for(const struct os_cgroup *cgroup) {
  uint64_t whole = (uint64_t)os_processor_count() * OS_CGROUP_PROCESSOR;
  if (!whole || cgroup->processor_quota >= whole) return 0;
  uint32_t cut = (uint32_t)((whole - cgroup->processor_quota) * LIMITS_WHOLE / whole);
  return cut < CACHE_CUT_MAX ? cut : CACHE_CUT_MAX;
}

/* Each cache of free memory takes at most a sixteenth of the memory limit: there are three, of
 * SuperSlabs, of Large blocks and of ranges, and none can serve another's requests. */
enum { CACHE_DIVISOR = 16 };

/* Up to three quarters of the limit age alone decides; from there on the decay time shrinks in
 * proportion to the rest, to a sixteenth at the limit: less would cost endless page faults where
 * other processes fill the cgroup. */
enum { KEEN_DIVISOR = 4, DECAY_CUT_MAX = LIMITS_WHOLE / 16 * 15 };

static uint32_t decay_cut_for(uint64_t used_bytes, uint64_t limit_bytes) {
  uint64_t zone = limit_bytes / KEEN_DIVISOR;
  uint64_t left = used_bytes < limit_bytes ? limit_bytes - used_bytes : 0;
  if (left >= zone) return 0;
  uint64_t cut = (zone - left) / (zone / LIMITS_WHOLE + 1);
  return cut < DECAY_CUT_MAX ? (uint32_t)cut : DECAY_CUT_MAX;
}

static uint64_t calm_bytes(uint64_t limit_bytes) {
  return limit_bytes - limit_bytes / KEEN_DIVISOR;
}

/* A program may pass the whole zone between two rounds, so its own memory also has a soft limit at
 * the zone's start. */
static const struct os_cgroup *read_cgroup(void) {
  const struct os_cgroup *cgroup = os_cgroup_read();
  uint64_t limit = cgroup->memory_bytes;
  store_relaxed(&limits.cache_cut, cache_cut_for(cgroup));
  if (limit == OS_CGROUP_NONE) return cgroup;
  store_relaxed(&limits.cache_end_bytes, limit / CACHE_DIVISOR + 1);
  if (!load_relaxed(&limits.soft_bytes)) store_relaxed(&limits.soft_bytes, calm_bytes(limit));
  return cgroup;
}

void limits_poll(void) {
  static const struct os_cgroup *cgroup;
  if (os_is_confined()) return; /* known limits stay in force */
  if (!cgroup) cgroup = read_cgroup();
  uint64_t limit = cgroup->memory_bytes;
  if (limit == OS_CGROUP_NONE) return;
  uint64_t used = os_cgroup_used_bytes(cgroup, calm_bytes(limit));
  store_relaxed(&limits.decay_cut, decay_cut_for(used, limit));
}
