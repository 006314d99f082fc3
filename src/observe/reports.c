#include "observe/reports.h"

#include "config/options.h"
#include "hakmem/hakmem.h"
#include "heap/heap.h"
#include "observe/snapshot.h"
#include "observe/stats_block.h"
#include "os/os.h"
#include "report/report.h"

enum { NAME_COLUMNS = 28, FIGURE_COLUMNS = 16, STANDARD_ERROR = 2 };

/* ---- text -------------------------------------------------------------------------------------------- */

static void text_line(struct text *text, const char *name, uint64_t value, const char *meaning) {
  text_string(text, "  ");
  text_string_column(text, name, NAME_COLUMNS);
  text_decimal_column(text, value, FIGURE_COLUMNS);
  text_string(text, "  ");
  text_string(text, meaning);
  text_char(text, '\n');
}

static void text_memory(struct text *text, const struct snapshot *snapshot) {
  text_string(text, "memory, bytes\n");
  text_line(text, "mapped", snapshot->mapped_bytes,
            "SuperSlabs and ranges that have address space");
  text_line(text, "slab blocks out", snapshot->slab_bytes_out, "live, or cached by threads");
  text_line(text, "large live", snapshot->large_live_bytes,
            "in blocks of 32 KiB to 1 MiB, or cached");
  text_line(text, "big live", snapshot->big_live_bytes, "in blocks above 1 MiB");
  text_line(text, "dirty free", snapshot->dirty_free_bytes, "free, given back by age");
  text_line(text, "metadata", snapshot->metadata_bytes, "hakmem's own records");
  text_line(text, "purged", snapshot->purged_bytes, "given back so far");
}

static void text_system(struct text *text, const struct snapshot *snapshot) {
  text_string(text, "operating system, calls\n");
  text_line(text, "os_maps", snapshot->os_maps, "mmap");
  text_line(text, "os_unmaps", snapshot->os_unmaps, "munmap");
  text_line(text, "os_purges", snapshot->os_purges, "madvise(DONTNEED)");
}

static uint64_t served_blocks(const struct snapshot *snapshot) {
  return snapshot->counters[COUNT_refilled_blocks] + snapshot->counters[COUNT_large_allocs] +
         snapshot->counters[COUNT_big_allocs];
}

void report_as_text(struct text *text) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  text_string(text, "hakmem ");
  text_string(text, HAKMEM_VERSION);
  text_string(text, ", process ");
  text_decimal(text, os_process_id());
  text_string(text, ": ");
  text_decimal(text, served_blocks(&snapshot));
  text_string(text, " blocks fetched past the magazines (hits are not counted)\n");
  text_memory(text, &snapshot);
  text_system(text, &snapshot);
  text_string(text, "counters (those that are 0 left out)\n");
  for (unsigned which = 0; which < COUNTER_COUNT; which++)
    if (snapshot.counters[which])
      text_line(text, counter_name(which), snapshot.counters[which], counter_meaning(which));
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

/* Members of one object; a comma before every one but the first. */
struct json_object {
  struct text *text;
  bool has_member;
};

static struct json_object json_open(struct text *text) {
  text_char(text, '{');
  return (struct json_object){.text = text};
}

static void json_key(struct json_object *object, const char *key) {
  if (object->has_member) text_char(object->text, ',');
  object->has_member = true;
  text_char(object->text, '"');
  text_string(object->text, key);
  text_string(object->text, "\":");
}

static void json_number(struct json_object *object, const char *key, uint64_t value) {
  json_key(object, key);
  text_decimal(object->text, value);
}

static void json_counters(struct text *text, const struct snapshot *snapshot) {
  struct json_object object = json_open(text);
  for (unsigned which = 0; which < COUNTER_COUNT; which++)
    json_number(&object, counter_name(which), snapshot->counters[which]);
  json_number(&object, "os_maps", snapshot->os_maps);
  json_number(&object, "os_unmaps", snapshot->os_unmaps);
  json_number(&object, "os_purges", snapshot->os_purges);
  json_number(&object, "purged_bytes", snapshot->purged_bytes);
  text_char(text, '}');
}

static void json_memory(struct text *text, const struct snapshot *snapshot) {
  struct json_object object = json_open(text);
  json_number(&object, "mapped_bytes", snapshot->mapped_bytes);
  json_number(&object, "metadata_bytes", snapshot->metadata_bytes);
  json_number(&object, "dirty_free_bytes", snapshot->dirty_free_bytes);
  json_number(&object, "slab_out_bytes", snapshot->slab_bytes_out);
  json_number(&object, "large_live_bytes", snapshot->large_live_bytes);
  json_number(&object, "big_live_bytes", snapshot->big_live_bytes);
  text_char(text, '}');
}

/* Over all heaps: where magazines were too small for the load's swing. */
static void json_class(struct text *text, unsigned class) {
  uint64_t bounces = 0;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    bounces += load_relaxed(&heap_of_owner(owner)->magazines[class].bounces);
  struct json_object object = json_open(text);
  json_number(&object, "class", class);
  json_number(&object, "block_bytes", class_bytes(class));
  json_number(&object, "magazine_bounces", bounces);
  text_char(text, '}');
}

void report_as_json(struct text *text) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  struct json_object object = json_open(text);
  json_key(&object, "hakmem");
  text_char(text, '"');
  text_string(text, HAKMEM_VERSION);
  text_char(text, '"');
  json_number(&object, "pid", os_process_id());
  json_key(&object, "counters");
  json_counters(text, &snapshot);
  json_key(&object, "memory");
  json_memory(text, &snapshot);
  json_key(&object, "classes");
  for (unsigned class = 0; class < CLASS_COUNT; class ++) {
    text_char(text, class ? ',' : '[');
    json_class(text, class);
  }
  text_string(text, "]}");
}

/* ---- the shared pool's slow paths ------------------------------------------------------------------------ */

static const enum counter pool_paths[] = {
    COUNT_acquire_empty, COUNT_acquire_unused, COUNT_acquire_lru,
    COUNT_acquire_os,    COUNT_released_slabs,
};
enum { POOL_PATH_COUNT = sizeof pool_paths / sizeof pool_paths[0] };

void report_pool_acquisitions(struct text *text) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  uint64_t total = 0;
  for (unsigned path = 0; path < POOL_PATH_COUNT; path++)
    total += snapshot.counters[pool_paths[path]];
  text_string(text, "hakmem: shared pool slow-path acquisitions: ");
  text_decimal(text, total);
  text_char(text, '\n');
  for (unsigned path = 0; path < POOL_PATH_COUNT; path++) {
    enum counter which = pool_paths[path];
    text_string(text, "  ");
    text_string_column(text, counter_name(which), NAME_COLUMNS);
    text_decimal_column(text, snapshot.counters[which], FIGURE_COLUMNS);
    text_string(text, "  ");
    text_percent(text, snapshot.counters[which], total);
    text_string(text, "%  ");
    text_string(text, counter_meaning(which));
    text_char(text, '\n');
  }
  text_line(text, "cas_retries", snapshot.counters[COUNT_cas_retries], "lock-free steps repeated");
  text_line(text, "lock_acquisitions", snapshot.counters[COUNT_lock_acquisitions],
            "locks of ranges and of the list of heaps; the pool has none");
  text_line(text, "lock_waits", snapshot.counters[COUNT_lock_waits], "of those, that had to wait");
}

/* ---- output ------------------------------------------------------------------------------------------------ */

void report_to_descriptor(void (*report)(struct text *), int descriptor) {
  char buffer[2048];
  struct text text;
  text_init(&text, buffer, sizeof buffer);
  text.sink = os_write;
  text.sink_argument = descriptor;
  report(&text);
  text_flush(&text);
}

static bool starts_with(const char *string, const char *start) {
  while (*start)
    if (*string++ != *start++) return false;
  return true;
}

static bool equals(const char *a, const char *b) { return starts_with(a, b) && starts_with(b, a); }

/* "%p" becomes the process id; false when it does not fit. */
static bool expand_path(const char *pattern, char *path, size_t path_bytes) {
  struct text text;
  text_init(&text, path, path_bytes - 1);
  for (; *pattern; pattern++) {
    if (pattern[0] == '%' && pattern[1] == 'p') {
      text_decimal(&text, os_process_id());
      pattern++;
    } else {
      text_char(&text, *pattern);
    }
  }
  path[text.length_bytes] = 0;
  return text.wanted_bytes == text.length_bytes;
}

static void report_to_file(void (*report)(struct text *), const char *pattern) {
  char path[4096];
  int descriptor = expand_path(pattern, path, sizeof path) ? os_create_file(path) : -1;
  if (descriptor < 0) {
    warn_stats_file(pattern);
    return;
  }
  report_to_descriptor(report, descriptor);
  os_close(descriptor);
}

static int exit_descriptor = STANDARD_ERROR;

static const char text_prefix[] = "text:", json_prefix[] = "json:";

static void report_stats(const char *how) {
  if (equals(how, "") || equals(how, "0")) return;
  if (equals(how, "1") || equals(how, "text"))
    report_to_descriptor(report_as_text, exit_descriptor);
  else if (equals(how, "json"))
    report_to_descriptor(report_as_json, exit_descriptor);
  else if (starts_with(how, text_prefix))
    report_to_file(report_as_text, how + sizeof text_prefix - 1);
  else if (starts_with(how, json_prefix))
    report_to_file(report_as_json, how + sizeof json_prefix - 1);
  else
    warn_malformed_option("HAKMEM_STATS", how, "1, json, text:FILE or json:FILE");
}

void reports_at_exit(void) {
  report_stats(options.stats);
  if (options.shared_pool_lock_stats)
    report_to_descriptor(report_pool_acquisitions, exit_descriptor);
}

void reports_at_load(void) {
  bool to_file = starts_with(options.stats, text_prefix) || starts_with(options.stats, json_prefix);
  if ((options.stats[0] && !to_file) || options.shared_pool_lock_stats)
    exit_descriptor = os_duplicate(STANDARD_ERROR);
}
