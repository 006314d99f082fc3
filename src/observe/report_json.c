#include "hakmem/hakmem.h"
#include "observe/reports.h"
#include "observe/snapshot.h"
#include "observe/stats_block.h"
#include "observe/survey.h"
#include "os/os.h"

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

/* Without an escape: for texts of ours. */
static void json_text(struct json_object *object, const char *key, const char *value) {
  json_key(object, key);
  text_char(object->text, '"');
  text_string(object->text, value);
  text_char(object->text, '"');
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

/* Over all heaps: where magazines were too small for the load's swing. */
static uint64_t magazine_bounces(unsigned class) {
  uint64_t bounces = 0;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    bounces += load_relaxed(&heap_of_owner(owner)->magazines[class].bounces);
  return bounces;
}

static void json_class(struct text *text, unsigned number, const struct class_survey *class) {
  struct json_object object = json_open(text);
  json_number(&object, "class", number);
  json_text(&object, "tier", class_tier_name(number));
  json_number(&object, "block_bytes", class_bytes(number));
  json_number(&object, "slabs", class->slabs);
  json_number(&object, "capacity_blocks", class->capacity_blocks);
  json_number(&object, "free_blocks", class->free_blocks);
  json_number(&object, "cached_blocks", class->cached_blocks);
  json_number(&object, "live_blocks", class->live_blocks);
  const uint64_t *counted = class->counted;
#define CLASS_COUNTER(name, unit, meaning) json_number(&object, #name, *counted++);
#include "base/counters.def"
  json_number(&object, "magazine_bounces", magazine_bounces(number));
  text_char(text, '}');
}

static void json_survey(struct json_object *object, const struct survey *survey) {
  json_number(object, "heaps_in_use", survey->heaps_in_use);
  json_number(object, "heaps_parked", survey->heaps_parked);
  json_key(object, "classes");
  for (unsigned number = 0; number < CLASS_COUNT; number++) {
    text_char(object->text, number ? ',' : '[');
    json_class(object->text, number, &survey->classes[number]);
  }
  text_char(object->text, ']');
}

void report_as_json(struct text *text) {
  struct snapshot snapshot;
  struct survey survey;
  snapshot_take(&snapshot);
  survey_take(&survey);
  struct json_object object = json_open(text);
  json_text(&object, "hakmem", HAKMEM_VERSION);
  json_number(&object, "pid", os_process_id());
  json_key(&object, "counters");
  json_counters(text, &snapshot);
  json_key(&object, "totals");
  json_totals(text, &snapshot);
  json_key(&object, "memory");
  json_memory(text, &snapshot);
  json_survey(&object, &survey);
  text_char(text, '}');
}
