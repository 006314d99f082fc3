#include "base/bits.h"
#include "stack/unwind_table.h"

/* The size of a piece of work: about 10 us. */
enum { PIECE_BYTES = 64 << 10, PIECE_RECORDS = 256 };

/* For each few bytes of the code the first record of a function that begins there; the next ones
 * nearly always follow it. */
enum {
  PARTS = 1 << 16,
  PART_SHIFT_MIN = 4,
  NEIGHBOURS = 64,
  PARTS_BACK = 1 << 14,
  PARTS_TRIED = 8
};
RARE_DATA static ATOMIC(uint32_t)
    parts[PARTS]; /* the record's distance from the first one, plus 1 */

static ATOMIC(bool) is_done;          /* relaxed: a thread that sees it late repeats a piece */
static ATOMIC(uintptr_t) searched_to; /* 0: not begun */
static ATOMIC(uintptr_t) indexed_to;  /* 0: the first record is not known yet */
static ATOMIC(uintptr_t) first_record;
static struct os_segment code, tables; /* constant once the first record is known */

/* ---- the first record ------------------------------------------------------------------------ */

static struct os_module bounds_of(const struct os_segment *segment) {
  return (struct os_module){.tables_begin = segment->begin, .tables_end = segment->end};
}

static bool find_code(struct os_segment *found) {
  struct os_segment segment;
  *found = (struct os_segment){0};
  for (unsigned number = 0; os_program_segment(number, &segment); number++)
    if (segment.is_code && segment.end - segment.begin > found->end - found->begin)
      *found = segment;
  return found->end != 0;
}

/* A common record, followed by one that refers to it and to the program's code. */
static bool is_first(const struct os_segment *segment, uintptr_t place) {
  struct os_module module = bounds_of(segment);
  struct unwind_record record;
  struct os_segment found_code;
  uintptr_t code_bytes, next;
  const uint32_t *words = (const uint32_t *)place;
  if (LIKELY(words[1] != 0) || (words[2] & 0xff) != 1 || words[0] % 4) return false;
  next = unwind_table_next(&module, place);
  if (!next || segment->end - next < 3 * sizeof *words) return false;
  if (((const uint32_t *)next)[1] != next + sizeof *words - place) return false;
  return unwind_table_describe(&module, next, &record, &code_bytes) && find_code(&found_code) &&
         record.function - found_code.begin < found_code.end - found_code.begin;
}

/* The segment that is not writable and reaches beyond the place. */
static bool find_tables(uintptr_t place, struct os_segment *segment) {
  for (unsigned number = 0; os_program_segment(number, segment); number++)
    if (!segment->is_writable && segment->end > place) return true;
  return false;
}

static bool search_piece(void) {
  enum { SMALLEST = 24 };
  struct os_segment segment;
  uintptr_t from = load_relaxed(&searched_to), at = from;
  if (!find_tables(from, &segment)) return false;
  if (at < segment.begin) at = round_up(segment.begin, sizeof(uint32_t));
  uintptr_t end = segment.end - at < PIECE_BYTES ? segment.end : at + PIECE_BYTES;
  for (; segment.end - at >= SMALLEST && at < end; at += sizeof(uint32_t)) {
    if (LIKELY(!is_first(&segment, at))) continue;
    uintptr_t nothing = 0;
    tables = segment; /* several threads may write the same values */
    find_code(&code);
    store_relaxed(&first_record, at);
    /* release: the stores above; pairs with index_piece and search_index. */
    cas_strong_acq_rel(&indexed_to, &nothing, at);
    return true;
  }
  /* acq_rel: orders nothing; of threads that do the same piece one moves on. */
  cas_strong_acq_rel(&searched_to, &from, end);
  return true;
}

/* ---- the index ------------------------------------------------------------------------------- */

static unsigned part_shift(void) {
  unsigned shift = PART_SHIFT_MIN;
  while ((code.end - code.begin) >> shift >= PARTS) shift++;
  return shift;
}

static void note(const struct os_module *module, uintptr_t record) {
  struct unwind_record found;
  uintptr_t code_bytes;
  if (!unwind_table_describe(module, record, &found, &code_bytes)) return;
  if (found.function - code.begin >= code.end - code.begin) return;
  ATOMIC(uint32_t) *part = &parts[(found.function - code.begin) >> part_shift()];
  if (!load_relaxed(part))
    store_relaxed(part, (uint32_t)(record - load_relaxed(&first_record)) + 1);
}

static bool index_piece(uintptr_t from) {
  struct os_module module = bounds_of(&tables);
  uintptr_t at = from, next = 1;
  for (unsigned count = 0; count < PIECE_RECORDS; count++, at = next) {
    next = unwind_table_next(&module, at);
    if (!next) break;
    note(&module, at);
  }
  /* release: the noted parts. One of the threads that do the same piece moves on. */
  if (next) cas_strong_acq_rel(&indexed_to, &from, at);
  return next != 0;
}

bool unwind_index_go_on(void) {
  struct os_module program;
  struct os_segment segment;
  if (LIKELY(load_relaxed(&is_done))) return false;
  bool is_needed =
      find_code(&segment) && os_find_module(segment.begin, &program) && !program.unwind_header;
  /* acquire: the records up to it; pairs with search_piece. */
  uintptr_t at = is_needed ? load_acquire(&indexed_to) : 0;
  bool has_more = is_needed && (at ? index_piece(at) : search_piece());
  if (!has_more) store_relaxed(&is_done, true);
  return has_more;
}

/* ---- looking up ------------------------------------------------------------------------------ */

static uintptr_t find_near(const struct os_module *module, uintptr_t record,
                           uintptr_t instruction) {
  struct unwind_record found;
  for (unsigned count = 0; record && count < NEIGHBOURS; count++) {
    if (unwind_table_read(module, record, instruction, &found)) return record;
    record = unwind_table_next(module, record);
  }
  return 0;
}

static uintptr_t search_index(const struct os_module *module, uintptr_t instruction) {
  /* acquire: the records up to it; pairs with search_piece. */
  if (!load_acquire(&indexed_to) || instruction - code.begin >= code.end - code.begin) return 0;
  size_t part = (instruction - code.begin) >> part_shift();
  uintptr_t record = 0;
  for (unsigned back = 0, tried = 0; !record && back < PARTS_BACK && tried < PARTS_TRIED; back++) {
    uint32_t place = back <= part ? load_relaxed(&parts[part - back]) : 0;
    if (!place) continue;
    record = find_near(module, load_relaxed(&first_record) + place - 1, instruction);
    tried++;
  }
  return record;
}

uintptr_t unwind_find_record(const struct os_module *module, uintptr_t instruction) {
  return module->unwind_header ? unwind_table_search(module, instruction)
                               : search_index(module, instruction);
}
