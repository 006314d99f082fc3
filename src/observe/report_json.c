#include "hakmem/hakmem.h"
#include "observe/reports.h"
#include "observe/snapshot.h"
#include "observe/stats_block.h"
#include "os/os.h"

/* Members of one object; a comma before every one but the first. */
struct json_object {
  struct text *text;
  const char *separator;
};

static struct json_object json_open(struct text *text) {
  text_char(text, '{');
  return (struct json_object){.text = text, .separator = ""};
}

static void json_key(struct json_object *object, const char *key) {
  text_format(object->text, "%s\"%s\":", object->separator, key);
  object->separator = ",";
}

static void json_number(struct json_object *object, const char *key, uint64_t value) {
  json_key(object, key);
  text_format(object->text, "%zu", value);
}

/* Without an escape: for texts of ours. */
static void json_text(struct json_object *object, const char *key, const char *value) {
  json_key(object, key);
  text_format(object->text, "\"%s\"", value);
}

static void json_counters(struct text *text, const struct snapshot *snapshot) {
  struct json_object object = json_open(text);
  for (unsigned which = 0; which < COUNTER_COUNT; which++)
    json_number(&object, counter_name(which), snapshot->counters[which]);
  text_char(text, '}');
}

static void json_totals(struct text *text, const struct snapshot *snapshot) {
  struct json_object object = json_open(text);
#define TOTAL(name, role, unit, meaning) json_number(&object, #name, snapshot->name);
#include "base/counters.def"
  text_char(text, '}');
}

static void json_memory(struct text *text, const struct snapshot *snapshot) {
  struct json_object object = json_open(text);
  json_number(&object, "mapped_bytes", snapshot->mapped_bytes);
  json_number(&object, "dirty_free_bytes", snapshot->dirty_free_bytes);
  json_number(&object, "slab_out_bytes", snapshot->slab_bytes_out);
  text_char(text, '}');
}

static void json_class(struct text *text, unsigned class, const uint64_t *counters) {
  struct json_object object = json_open(text);
  json_number(&object, "class", class);
  json_text(&object, "tier", class_tier_name(class));
  json_number(&object, "block_bytes", class_bytes(class));
#define CLASS_COUNTER(name, unit, meaning) json_number(&object, #name, *counters++);
#include "base/counters.def"
  text_char(text, '}');
}

static void json_classes(struct text *text, const struct snapshot *snapshot) {
  for (unsigned class = 0; class < CLASS_COUNT; class ++) {
    text_char(text, class ? ',' : '[');
    json_class(text, class, snapshot->class_counters[class]);
  }
  text_char(text, ']');
}

void report_as_json(struct text *text) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  struct json_object object = json_open(text);
  json_text(&object, "hakmem", HAKMEM_VERSION);
  json_number(&object, "pid", os_process_id());
  json_key(&object, "counters");
  json_counters(text, &snapshot);
  json_key(&object, "totals");
  json_totals(text, &snapshot);
  json_key(&object, "memory");
  json_memory(text, &snapshot);
  json_key(&object, "classes");
  json_classes(text, &snapshot);
  text_char(text, '}');
}
