/* src/observe/stats_block: whoever reads it by what it says about itself finds the figures. */
#include "observe/stats_block.h"

#include "heaps.h"

static const struct stats_entry *entry_at(unsigned index) {
  const char *entries = (const char *)hak_stats_block.entries;
  return (const struct stats_entry *)(const void *)(entries + index * hak_stats_block.entry_bytes);
}

static const char *text_at(uint32_t offset) {
  REQUIRE(offset < hak_stats_block.text_bytes);
  return hak_stats_block.texts + offset;
}

static const char *after(const char *text) { return text + strlen(text) + 1; }

static const struct stats_entry *find(const char *record, const char *name) {
  for (unsigned index = 0; index < hak_stats_block.entry_count; index++) {
    const struct stats_entry *entry = entry_at(index);
    if (!strcmp(text_at(entry->record_text), record) && !strcmp(text_at(entry->text), name))
      return entry;
  }
  return NULL;
}

static const char *root(const char *name) {
  for (unsigned index = 0; index < hak_stats_block.root_count; index++)
    if (!strcmp(hak_stats_block.roots[index].name, name))
      return hak_stats_block.roots[index].address;
  return NULL;
}

/* The number that the entry says is in the record at `address`. */
static uint64_t number(const char *record, const char *name, const char *address) {
  const struct stats_entry *entry = find(record, name);
  REQUIRE(entry && entry->kind == 'f' && entry->element_bytes <= sizeof(uint64_t));
  uint64_t value = 0;
  memcpy(&value, address + entry->value, entry->element_bytes);
  return value;
}

CHILD_TEST(describe_itself) {
  REQUIRE(!strcmp(hak_stats_block.magic, "hakmem-stats") && (uintptr_t)&hak_stats_block % 8 == 0);
  REQUIRE(hak_stats_block.format == STATS_FORMAT && hak_stats_block.entry_count > 100);
  REQUIRE(!strcmp(hak_stats_block.version, hak_version()));
  for (unsigned index = 0; index < hak_stats_block.entry_count; index++) {
    const struct stats_entry *entry = entry_at(index);
    const char *name = text_at(entry->text), *record = text_at(entry->record_text);
    REQUIRE(*name && *record && find(record, name) == entry); /* nothing twice */
    REQUIRE(strchr("rfc", entry->kind) && strchr("cgsw", entry->role) &&
            strchr("uidptr", entry->type));
    if (entry->kind == 'f') {
      const struct stats_entry *whole = find(record, record);
      REQUIRE(whole && whole->kind == 'r');
      REQUIRE(entry->value + entry->element_bytes * entry->element_count <= whole->value);
    }
    if (strchr("cg", entry->role))
      REQUIRE(*after(name) && *after(after(name))); /* unit and meaning */
    if (entry->kind == 'f' && entry->type == 'r')
      REQUIRE(find(after(after(name)), after(after(name))));
  }
}

/* From the list of heaps to this thread's counters, by entries alone. */
CHILD_TEST(lead_to_the_counters) {
  start_library();
  for (unsigned index = 0; index < 1000; index++) must_malloc(100);
  const char *owner;
  memcpy(&owner, root("owners"), sizeof owner);
  uint64_t refilled = 0, heaps = 0;
  while (owner) {
    refilled += number("counters", "refilled_blocks", owner + find("owner", "counters")->value);
    heaps++;
    owner = (const char *)(uintptr_t)number("owner", "next_of_all", owner);
  }
  REQUIRE(heaps == 1 && refilled == counted(COUNT_refilled_blocks) && refilled >= 1000);
}

CHILD_TEST(lead_to_totals_and_options) {
  start_library();
  void *block = must_malloc(3 << 20);
  REQUIRE(number("totals", "big_live_bytes", root("totals")) == look().big_live_bytes);
  REQUIRE(number("totals", "os_maps", root("totals")) == look().os_maps);
  REQUIRE(number("options", "decay_ms", root("options")) == options.decay_ms);
  REQUIRE(number("window", "base", root("window")) <= (uintptr_t)block);
  hak_free(block);
}

CHILD_TEST(name_counters_for_reports) {
  REQUIRE(!strcmp(counter_name(COUNT_refills), "refills"));
  REQUIRE(!strcmp(counter_name(COUNT_purges), "purges"));
  REQUIRE(!strcmp(counter_meaning(COUNT_purges), "rounds of purging"));
}
