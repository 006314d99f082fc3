#include "stack/unwind.h"

#include <string.h>

#include "base/bits.h"
#include "base/registers.h"
#include "os/lock.h"
#include "os/os.h"
#include "stack/unwind_table.h"
#include "stack/word.h"

enum { WORD = sizeof(uintptr_t), OWN_FRAMES_MAX = 32, UNKNOWN_PAGES_MAX = 64 };

struct range {
  uintptr_t begin, end;
};

struct walk {
  uintptr_t value[REGISTER_COUNT];
  uintptr_t instruction;
  bool has_switched, is_by_frame_pointer;
  bool is_interrupted;     /* by a signal; else in a call that returns there */
  struct range stack;      /* the known part of the thread's own stack */
  struct range other;      /* the known part of another stack that the walk is on */
  unsigned unknown_pages;  /* number of pages that may still be probed */
  struct os_module module; /* of the previous frame; usually this one's too */
};

enum step { STEP_TO_CALLER, STEP_LOST, STEP_OUTERMOST };

static bool covers(struct range range, uintptr_t address) {
  return address - range.begin < range.end - range.begin;
}

/* ---- the stack ------------------------------------------------------------------------------- */

/* The number of pages at the end of this thread's stack that were found readable, and stay so while
 * it runs; times 2, plus 1 for the stack that the process began on. */
static THREAD_LOCAL uint16_t known_stack;
enum { KNOWN_PAGES_MAX = UINT16_MAX / 2 };

/* Below the end of the first stack the kernel maps nothing else within its usual limit; deeper
 * addresses are probed each time. */
#define FIRST_STACK_BYTES ((uintptr_t)8 << 20)

/* Between a thread's pointer and its first frame lies static data, less than the smallest stack
 * has. A larger step than most frames' may lead to another stack. */
enum { THREAD_DATA_MAX_BYTES = 12 << 10, FRAME_MAX_BYTES = 64 << 10 };

/* Extends the known pages down to the stack pointer, if it lies there; UNKNOWN_PAGES_MAX at a
 * time. */
static unsigned learn_pages(uintptr_t end, unsigned pages, uintptr_t stack_pointer) {
  uintptr_t page_bytes = os_page_bytes(), begin = end - pages * page_bytes;
  for (unsigned asked = 0; asked < UNKNOWN_PAGES_MAX && begin > stack_pointer; asked++) {
    begin -= page_bytes;
    if (pages == KNOWN_PAGES_MAX || !os_can_read(begin)) break;
    pages++;
  }
  return pages;
}

static uintptr_t end_of(bool is_first) {
  return is_first ? os_first_stack_end() : thread_pointer();
}

static void learn_stack(bool is_first, uintptr_t stack_pointer) {
  unsigned known = (known_stack & 1) == is_first ? known_stack / 2 : 0;
  unsigned pages = learn_pages(round_up(end_of(is_first), os_page_bytes()), known, stack_pointer);
  known_stack = (uint16_t)(2 * pages + is_first);
}

static struct range known_range(void) {
  uintptr_t end = end_of(known_stack & 1), page_bytes = os_page_bytes();
  unsigned pages = known_stack / 2;
  if (!pages) return (struct range){0};
  return (struct range){round_up(end, page_bytes) - pages * page_bytes, round_down(end, WORD)};
}

bool unwind_knows(uintptr_t address) { return covers(known_range(), address); }

/* The known part of the current stack, extended if it is the process's first one. */
static struct range own_stack(uintptr_t stack_pointer) {
  if (os_first_stack_end() - stack_pointer < FIRST_STACK_BYTES) learn_stack(true, stack_pointer);
  return known_range();
}

/* For another thread's stack: a walk that ends where the thread began, and did not leave its stack
 * since `from`, shows that everything between is its own. Readable pages alone prove nothing:
 * stacks that the program makes, and unmaps, may lie right below; and the first thread's data lies
 * outside its stack. */
static void learn_from_end(uintptr_t from, uintptr_t end) {
  bool is_there = from <= end && thread_pointer() - end < THREAD_DATA_MAX_BYTES;
  if (!is_there || os_is_confined() || os_is_guest()) return; /* a guest has its parent's number */
  if (os_process_id() != thread_number()) learn_stack(false, from);
}

/* On a stack that the program made: probed page by page, as far as needed. */
NOINLINE static bool is_readable(struct walk *walk, uintptr_t address) {
  if (covers(walk->other, address)) return true;
  if (!walk->unknown_pages || !os_can_read(address)) return false;
  walk->unknown_pages--;
  uintptr_t page = round_down(address, os_page_bytes());
  if (page != walk->other.end) walk->other.begin = page;
  walk->other.end = page + os_page_bytes();
  return true;
}

INLINE bool read_word(struct walk *walk, uintptr_t address, uintptr_t *word) {
  bool is_known = LIKELY(covers(walk->stack, address)) || is_readable(walk, address);
  if (UNLIKELY(address % WORD || !is_known)) return false;
  *word = word_at(address);
  return true;
}

/* ---- a step by a rule ------------------------------------------------------------------------ */

static bool find_end(struct walk *walk, const struct unwind_rule *rule, uintptr_t *end) {
  *end = walk->value[rule->end_register] + (uintptr_t)(intptr_t)rule->end_offset;
  if (!rule->end_is_loaded) return true;
  bool is_read = read_word(walk, *end, end);
  *end += (uintptr_t)(intptr_t)rule->loaded_offset;
  return is_read;
}

static bool find_saved(struct walk *walk, const struct unwind_rule *rule, uintptr_t end) {
  uintptr_t base = walk->value[rule->base];
  for (unsigned left = rule->saved; left; left &= left - 1) {
    unsigned which = lowest_bit(left);
    uintptr_t from = rule->from_base >> which & 1 ? base : end;
    uintptr_t place = from + (uintptr_t)((intptr_t)rule->place[which] * WORD);
    if (!read_word(walk, place, &walk->value[which])) return false;
  }
  for (unsigned left = rule->lost; left; left &= left - 1) walk->value[lowest_bit(left)] = 0;
  return true;
}

static enum step step_by_rule(struct walk *walk, const struct unwind_rule *rule) {
  bool has_return = (rule->saved >> REGISTER_RETURN & 1) || RETURN_MAY_STAY_IN_REGISTER;
  uintptr_t end;
  if (rule->is_outermost) return STEP_OUTERMOST;
  if (!has_return || !find_end(walk, rule, &end)) return STEP_LOST;
  bool has_pointer = rule->saved >> REGISTER_SP & 1;
  if (!find_saved(walk, rule, end)) return STEP_LOST;
  if (!has_pointer) walk->value[REGISTER_SP] = end;
  walk->is_by_frame_pointer = false;
  unsigned next = rule->saved >> REGISTER_PC & 1 ? REGISTER_PC : REGISTER_RETURN;
  walk->is_interrupted = rule->is_signal;
  walk->instruction = without_signature(walk->value[next]);
  return walk->instruction ? STEP_TO_CALLER : STEP_OUTERMOST;
}

/* ---- a step without tables ------------------------------------------------------------------- */

/* The kernel's return from a signal handler. The stack rules out most other code: the kernel links
 * no contexts. */
static bool find_signal_rule(struct walk *walk, struct unwind_rule *rule) {
  static const unsigned char ending[] = SIGNAL_ENDING;
  static const struct unwind_rule signal_rule = {.end_register = REGISTER_SP,
                                                 .is_signal = true,
                                                 .saved = (1 << REGISTER_COUNT) - 1,
                                                 .place = SIGNAL_FRAME_WORDS};
  unsigned char code[sizeof ending];
  uintptr_t link;
  if (!read_word(walk, walk->value[REGISTER_SP] + SIGNAL_LINK_WORD * WORD, &link) || link)
    return false;
  if (!os_read_safely(code, (const void *)walk->instruction, sizeof code)) return false;
  *rule = signal_rule;
  return memcmp(code, ending, sizeof code) == 0;
}

/* Code without tables and frame pointers that CPython makes for profilers (-X perf), one piece for
 * each function, to call its interpreter. Its caller lies in a module: only then the kernel is
 * asked to read the code, which may be gone. */
static bool find_trampoline_rule(struct walk *walk, struct unwind_rule *rule) {
  static const unsigned char ending[] = TRAMPOLINE_ENDING;
  static const struct unwind_rule trampoline_rule = {.end_register = REGISTER_SP,
                                                     .end_offset = (TRAMPOLINE_WORDS + 1) * WORD,
                                                     .saved = 1 << REGISTER_RETURN,
                                                     .place[REGISTER_RETURN] = -1};
  unsigned char code[sizeof ending];
  struct os_module module;
  uintptr_t caller;
  if (!read_word(walk, walk->value[REGISTER_SP] + TRAMPOLINE_WORDS * WORD, &caller)) return false;
  if (!os_find_module(caller, &module)) return false;
  if (!os_read_safely(code, (const void *)walk->instruction, sizeof code)) return false;
  *rule = trampoline_rule;
  return memcmp(code, ending, sizeof code) == 0;
}

/* Each caller's frame lies above. One exception per walk is allowed, for another stack: Go calls C
 * on a stack that is not the caller's. */
static bool may_be_frame(struct walk *walk, uintptr_t frame, uintptr_t caller) {
  struct os_module module;
  if (frame >= walk->value[REGISTER_SP]) return true;
  bool may_switch = !walk->has_switched && os_find_module(caller, &module);
  walk->has_switched = true;
  return may_switch;
}

/* A process and a thread begin with a frame pointer of 0; in code without tables any number may
 * stand there. */
static bool is_start(const struct walk *walk) {
  bool is_certain = walk->is_by_frame_pointer || walk->module.unwind_header;
  return is_certain && !walk->value[REGISTER_FP];
}

/* A pair of words, the caller's frame pointer and the return address, above the function's other
 * data on the stack. */
static enum step step_by_frame_pointer(struct walk *walk) {
  uintptr_t frame = walk->value[REGISTER_FP], pair[2];
  if (is_start(walk)) return STEP_OUTERMOST;
  if (!read_word(walk, frame, &pair[0]) || !read_word(walk, frame + WORD, &pair[1]))
    return STEP_LOST;
  uintptr_t caller = without_signature(pair[1]);
  if (!caller || !may_be_frame(walk, frame, caller)) return STEP_LOST;
  walk->value[REGISTER_FP] = pair[0];
  walk->value[REGISTER_SP] = frame + sizeof pair;
  walk->instruction = caller;
  walk->is_interrupted = false;
  walk->is_by_frame_pointer = true;
  return STEP_TO_CALLER;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool is_in_module(struct walk *walk, uintptr_t instruction) {
  struct range module = {walk->module.begin, walk->module.end};
  if (LIKELY(covers(module, instruction)) || os_find_module(instruction, &walk->module))
    return true;
  walk->module = (struct os_module){0};
  return false;
}

/* If a frame pointer does not lie at the end of its frame, following it leaves the stack pointer
 * unknown. */
static bool is_end_unknown(const struct walk *walk, const struct unwind_rule *rule) {
  return !FRAME_POINTER_IS_AT_END && walk->is_by_frame_pointer && rule->end_register == REGISTER_SP;
}

static enum step step(struct walk *walk) {
  struct unwind_rule rule;
  /* A call may be its function's last instruction. */
  uintptr_t instruction = walk->instruction - !walk->is_interrupted;
  if (LIKELY(is_in_module(walk, instruction) &&
             unwind_cache_find(&walk->module, instruction, &rule)) &&
      !is_end_unknown(walk, &rule))
    return step_by_rule(walk, &rule);
  if (!walk->is_interrupted && os_is_after_first_call(walk->instruction)) return STEP_OUTERMOST;
  /* On a makecontext() stack the outermost return address is the start of a function, not the
   * instruction after a call. */
  uintptr_t record = walk->module.end ? unwind_find_record(&walk->module, walk->instruction) : 0;
  if (unwind_table_has_start(&walk->module, record, walk->instruction)) return STEP_OUTERMOST;
  if (find_signal_rule(walk, &rule)) return step_by_rule(walk, &rule);
  if (!walk->module.end && find_trampoline_rule(walk, &rule)) return step_by_rule(walk, &rule);
  return step_by_frame_pointer(walk);
}

/* Whether the next frame lies, or may lie, on another stack. */
static bool leaves_stack(const struct walk *walk, uintptr_t before) {
  return walk->is_interrupted || walk->value[REGISTER_SP] - before >= FRAME_MAX_BYTES;
}

void unwind_prepare(void) {
  while (unwind_index_go_on()) {
  }
}

NOINLINE size_t unwind_stack(uintptr_t *frames, size_t max, bool *is_complete) {
  struct walk walk = {.unknown_pages = UNKNOWN_PAGES_MAX};
  walk.instruction = registers_capture(walk.value);
  uintptr_t before = walk.value[REGISTER_SP], entered = before;
  walk.stack = own_stack(before);
  unwind_index_go_on();
  size_t count = 0;
  unsigned own = 0;
  enum step last;
  while ((last = step(&walk)) == STEP_TO_CALLER && count < max) {
    bool is_own = count == 0 && own < OWN_FRAMES_MAX && os_is_in_library(walk.instruction);
    own += is_own;
    if (!is_own) frames[count++] = walk.instruction;
    if (UNLIKELY(leaves_stack(&walk, before))) entered = walk.value[REGISTER_SP];
    before = walk.value[REGISTER_SP];
  }
  *is_complete = last == STEP_OUTERMOST;
  if (*is_complete && UNLIKELY(!covers(walk.stack, entered))) learn_from_end(entered, before);
  return count;
}
