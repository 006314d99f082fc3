/* src/pool/slot_index.c: the words above a SuperSlab's own, which searches go down (pair 5 of
 * docs/MEMORY_ORDER.md, on each level). */
#include "model.h"
#include "pool/slots.h"

/* So many chunks that a search begins at the roots; three SuperSlabs that share a word, or only the
 * word above. */
enum { CHUNKS = 600, FIRST = 512, BESIDE = 513, ABOVE = 520 };

static struct superslab superslabs[3];
static const uint64_t none = 0, one_run = 0xf0000000f;

static void set_up(void) {
  static const size_t chunks[] = {FIRST, BESIDE, ABOVE};
  store_relaxed(&window.frontier_chunk, CHUNKS);
  for (unsigned index = 0; index < 3; index++) superslabs[index].chunk = chunks[index];
}

static void change(struct superslab *superslab, uint64_t slots) {
  store_seq(&superslab->slots, slots);
  slot_index_note(superslab->chunk, &superslab->slots, slots);
}

static void search(void) {
  size_t chunk = slot_index_find(KIND_ANY_RUN);
  MODEL_REQUIRE(chunk == NO_CHUNK || chunk == FIRST || chunk == BESIDE || chunk == ABOVE);
}

/* Whatever has a run is found, lowest first; what has none leads a search astray once. */
static void check(void) {
  size_t wanted = NO_CHUNK, found;
  for (unsigned index = 3; index-- > 0;)
    if (load_relaxed(&superslabs[index].slots)) wanted = superslabs[index].chunk;
  while ((found = slot_index_find(KIND_ANY_RUN)) != wanted) {
    MODEL_REQUIRE(found < wanted);
    struct superslab *superslab = &superslabs[found == FIRST ? 0 : found == BESIDE ? 1 : 2];
    MODEL_REQUIRE(superslab->chunk == found && !load_relaxed(&superslab->slots));
    slot_index_note(found, &superslab->slots, none);
  }
}

static void open_first(void) { change(&superslabs[0], one_run); }
static void close_first(void) { change(&superslabs[0], none); }
static void open_beside(void) { change(&superslabs[1], one_run); }
static void open_above(void) { change(&superslabs[2], one_run); }

static void set_up_open(void) {
  set_up();
  open_first();
}

static void close_and_search(void) {
  close_first();
  search();
}

static const struct model_mutant mutants[] = {
    {"no look below after a word was cleared",
     {{"lower_if_gone", "load", "words", MODEL_NOTHING, 0}}},
    {"an old word below", {{"lower_if_gone", "load", "words", MODEL_WEAKEN, 0}}},
    {"cleared late", {{"lower", "and", "words", MODEL_WEAKEN, 0}}},
    {"cleared in two steps", {{"lower", "and", "words", MODEL_SPLIT, 0}}},
    {"an old word above", {{"raise", "load", "word", MODEL_WEAKEN, 0}}}};

static const struct model_mutant first_mutants[] = {
    {"set in two steps", {{"raise", "or", "word", MODEL_SPLIT, 0}}}};

SCENARIO("index-beside", .set_up = set_up_open, .threads = {close_and_search, open_beside},
         .check = check, MUTANTS(mutants));
SCENARIO("index-above", .set_up = set_up_open, .threads = {close_and_search, open_above},
         .check = check);
SCENARIO("index-first", .set_up = set_up, .threads = {open_first, open_above, search},
         .check = check, MUTANTS(first_mutants));
