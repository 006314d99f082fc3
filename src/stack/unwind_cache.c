/* unwind_cache.c: an entry is valid only while the bytes of .eh_frame from which it was made are
 * unchanged: so no code has to notice that a module has gone and another has taken its place. Any
 * thread that finds a rule writes an entry, and all read them, at any time, in signal handlers too:
 * none waits for a writer, not even for one that a fork has cut off. */
#include "base/bits.h"
#include "stack/unwind_table.h"

enum { ENTRIES = 4096, ENTRY_WORDS = 6 };

struct kept {
  uintptr_t instruction, record;
  struct unwind_rule rule;
  uint32_t check;
};

/* Read and written word by word. */
union kept_words {
  struct kept kept;
  uint64_t words[ENTRY_WORDS];
};
_Static_assert(sizeof(struct kept) <= ENTRY_WORDS * sizeof(uint64_t),
               "an entry holds what is kept");

struct entry {
  ATOMIC(uint64_t) turn; /* odd: being written */
  ATOMIC(uint64_t) words[ENTRY_WORDS];
};
RARE_DATA static CACHE_ALIGNED struct entry entries[ENTRIES];

/* False when it was being written. */
INLINE bool read_entry(struct entry *entry, union kept_words *found) {
  uint64_t turn = load_acquire(&entry->turn); /* the words of that turn; pairs with write_entry */
  /* acquire: a reader that sees a word of a later turn sees that turn below; pairs with
   * write_entry. */
  for (unsigned word = 0; word < ENTRY_WORDS; word++)
    found->words[word] = load_acquire(&entry->words[word]);
  return !(turn & 1) && load_relaxed(&entry->turn) == turn;
}

/* One of several writers goes on; a signal handler skips an entry that its thread was writing. */
static void write_entry(struct entry *entry, const union kept_words *kept) {
  uint64_t turn = load_relaxed(&entry->turn);
  /* acq_rel: the words come after; pairs with read_entry, by way of each word. */
  if (turn & 1 || !cas_strong_acq_rel(&entry->turn, &turn, turn + 1)) return;
  for (unsigned word = 0; word < ENTRY_WORDS;
       word++) /* after the odd turn; pairs with read_entry */
    store_release(&entry->words[word], kept->words[word]);
  store_release(&entry->turn, turn + 2); /* the words before; pairs with read_entry */
}

static bool find(const struct os_module *module, uintptr_t instruction, struct kept *kept) {
  struct unwind_record record;
  uintptr_t place = unwind_find_record(module, instruction);
  kept->check = unwind_table_check(module, place);
  kept->instruction = instruction;
  kept->record = place;
  return kept->check && unwind_table_read(module, place, instruction, &record) &&
         unwind_program_run(&record, instruction, &kept->rule);
}

bool unwind_cache_find(const struct os_module *module, uintptr_t instruction,
                       struct unwind_rule *rule) {
  struct entry *entry = &entries[mix_bits(instruction) % ENTRIES];
  union kept_words found;
  struct kept *kept = &found.kept;
  bool is_kept = read_entry(entry, &found) && kept->instruction == instruction &&
                 unwind_table_check(module, kept->record) == kept->check;
  if (UNLIKELY(!is_kept)) {
    if (!find(module, instruction, kept)) return false;
    write_entry(entry, &found);
  }
  *rule = kept->rule;
  return true;
}
