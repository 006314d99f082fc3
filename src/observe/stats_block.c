#include "observe/stats_block.h"

#include "base/scan.h"
#include "cache/heap.h"
#include "cache/quarantine.h"
#include "config/limits.h"
#include "config/options.h"
#include "guard/guarded.h"
#include "hakmem/hakmem.h"
#include "named/named_heap.h"
#include "profile/lives.h"
#include "profile/samples.h"
#include "profile/sites.h"
#include "profile/trace_ring.h"
#include "ranges/range_magazine.h"
#include "ranges/range_record.h"

#define KIND_address 'p'
#define KIND_number 'u'
#define KIND_numbers 'u'
#define KIND_signed_number 'i'
#define KIND_real 'd'
#define KIND_FLAG 'u'
#define KIND_NUMBER 'u'
#define KIND_PART 'u'
#define KIND_TEXT 't'
#define ROLE_counter 'c'
#define ROLE_gauge 'g'

#define MEMBER(type, member) (((type *)0)->member)
#define ELEMENT_BYTES_address(type, member) sizeof MEMBER(type, member)
#define ELEMENT_BYTES_number(type, member) sizeof MEMBER(type, member)
#define ELEMENT_BYTES_signed_number(type, member) sizeof MEMBER(type, member)
#define ELEMENT_BYTES_real(type, member) sizeof MEMBER(type, member)
#define ELEMENT_BYTES_numbers(type, member) sizeof MEMBER(type, member)[0]

/* ---- texts ----------------------------------------------------------------------------------- */

struct texts {
#define TEXT(member, text) char member[sizeof(text)];
#include "observe/stats_texts.def"
};

KEPT_IN_CORE static const struct texts texts = {
#define TEXT(member, text) .member = text,
#include "observe/stats_texts.def"
};

/* ---- entries --------------------------------------------------------------------------------- */

#define TEXT_OF(member) offsetof(struct texts, member)
#define ENTRY(text_member, record_member, kind_letter, role_letter, type_letter)              \
  .text = TEXT_OF(text_member), .record_text = TEXT_OF(record_member), .kind = (kind_letter), \
  .role = (role_letter), .type = (type_letter)
#define ELEMENTS(type, member, one_bytes)                                  \
  .value = offsetof(type, member), .element_bytes = (uint32_t)(one_bytes), \
  .element_count = (uint32_t)(sizeof MEMBER(type, member) / (one_bytes))

KEPT_IN_CORE static const struct stats_entry entries[] = {
#define COUNTER(name, unit, meaning)                                            \
  {ENTRY(counter_##name, record_counters, 'f', 'c', 'u'),                       \
   .value = COUNT_##name * sizeof(uint64_t), .element_bytes = sizeof(uint64_t), \
   .element_count = 1},
#define CLASS_COUNTER(name, unit, meaning)                            \
  {ENTRY(class_counter_##name, record_class_counters, 'f', 'c', 'u'), \
   ELEMENTS(struct class_counters, name, sizeof(uint64_t))},
#define TOTAL(name, role, unit, meaning)                      \
  {ENTRY(total_##name, record_totals, 'f', ROLE_##role, 'u'), \
   ELEMENTS(struct totals, name, sizeof(uint64_t))},
#define CONSTANT(name, number) \
  {ENTRY(constant_##name, record_constant, 'c', 's', 'u'), .value = (uint32_t)(number)},
#define RECORD(record, type) \
  {ENTRY(record_##record, record_##record, 'r', 's', 'r'), .value = sizeof(type)},
#define FIELD(record, type, name, member, kind)                            \
  {ENTRY(field_##record##_##name, record_##record, 'f', 's', KIND_##kind), \
   ELEMENTS(type, member, ELEMENT_BYTES_##kind(type, member))},
#define WRITABLE(record, type, name, member)                       \
  {ENTRY(field_##record##_##name, record_##record, 'f', 'w', 'u'), \
   ELEMENTS(type, member, sizeof MEMBER(type, member))},
#define NESTED(record, type, name, member, inner)                  \
  {ENTRY(field_##record##_##name, record_##record, 'f', 's', 'r'), \
   ELEMENTS(type, member, sizeof(struct inner))},
#include "base/counters.def"
#include "observe/records.def"
#define OPTION(kind, field, default_value, minimum, maximum, sentence) \
  {ENTRY(option_##field, record_options, 'f', 's', KIND_##kind),       \
   ELEMENTS(struct options, field, sizeof MEMBER(struct options, field))},
#include "config/options.def"
#undef OPTION
};

static const struct stats_root roots[] = {
    {"window", &window},
    {"owners", &all_owners},
    {"named_rows", &named_rows},
    {"stray_counters", &stray_counters},
    {"totals", &totals},
    {"class_bytes", class_block_bytes},
    {"options", &options},
    {"limits", &limits},
    {"guard_report", &guard_report},
    {"profile_control", &profile_control},
    {"profile_state", &profile_state},
};

const struct stats_block hak_stats_block = {
    .magic = "hakmem-stats",
    .format = STATS_FORMAT,
    .block_bytes = sizeof hak_stats_block,
    .entry_bytes = sizeof entries[0],
    .entry_count = sizeof entries / sizeof entries[0],
    .entries = entries,
    .root_bytes = sizeof roots[0],
    .root_count = sizeof roots / sizeof roots[0],
    .roots = roots,
    .texts = (const char *)&texts,
    .text_bytes = sizeof texts,
    .version = HAKMEM_VERSION,
};

/* The counters come first. */
static const char *counter_text(enum counter which) {
  return (const char *)&texts + entries[which].text;
}

const char *counter_name(enum counter which) { return counter_text(which); }

const char *counter_meaning(enum counter which) {
  const char *unit = scan_next(counter_text(which));
  return scan_next(unit);
}
