/* every_instruction.c: a stretch of code is run instruction by instruction (the processor's trap
 * flag); at each the handler's stack is unwound, which leads through the interrupted frame wherever
 * it was: in a prologue, in the PLT, in the dynamic linker's resolver, in the C library's assembly,
 * and in the unwinder itself, which is so called while it writes what it found.
 *
 * Prints how many stacks there were, and how many of them were not as backtrace had them or not
 * complete. */
#include <signal.h>
#include <string.h>
#include <wchar.h>

#include "compare.h"

static struct stacks stacks;
static unsigned long seen, different, incomplete;

static void on_trap(int signal) {
  (void)signal;
  stacks_take(&stacks);
  seen++;
  incomplete += !stacks.is_complete;
  if (stacks_agree(&stacks)) return;
  if (different++ < 3) stacks_print(&stacks, "different");
}

/* Not the compilers' built-in functions: clang's tables do not tell that a word lies on the stack
 * between push and pop. */
void set_trap_flag(void);
void clear_trap_flag(void);
#define CHANGE_FLAGS(name, how)           \
  __asm__(".text\n" #name                 \
          ":\n"                           \
          "  .cfi_startproc\n"            \
          "  pushfq\n"                    \
          "  .cfi_adjust_cfa_offset 8\n"  \
          "  " how                        \
          ", (%rsp)\n"                    \
          "  popfq\n"                     \
          "  .cfi_adjust_cfa_offset -8\n" \
          "  ret\n"                       \
          "  .cfi_endproc\n")
CHANGE_FLAGS(set_trap_flag, "orq $0x100");
CHANGE_FLAGS(clear_trap_flag, "andq $~0x100");

static int compare_numbers(const void *left, const void *right) {
  return *(const int *)left - *(const int *)right;
}

__attribute__((noinline)) static size_t unwind_here(void) {
  uintptr_t frames[FRAMES_MAX];
  bool is_complete;
  size_t count = unwind_stack(frames, FRAMES_MAX, &is_complete);
  if (!is_complete) abort();
  return count;
}

/* Functions that nothing has called before: with lazy binding each goes through the resolver. */
__attribute__((noinline)) static size_t work(char *text, size_t bytes) {
  wchar_t wide[32];
  if (unwind_here() != unwind_here()) abort();
  int numbers[] = {3, 1, 2};
  qsort(numbers, 3, sizeof *numbers, compare_numbers);
  snprintf(text, bytes, "%d %.3f %s", numbers[0], 1.5, "some text");
  mbstowcs(wide, text, 32);
  return strlen(text) + wcslen(wide) + strtoul("123", NULL, 10) + (size_t)strcspn(text, "x");
}

int main(void) {
  char text[64];
  struct sigaction action = {.sa_handler = on_trap};
  void *frames[2];
  backtrace(frames, 2); /* loads libgcc */
  sigaction(SIGTRAP, &action, NULL);
  set_trap_flag();
  size_t sum = work(text, sizeof text);
  clear_trap_flag();
  printf("%lu stacks, %lu different, %lu incomplete (%zu)\n", seen, different, incomplete, sum);
  return 0;
}
