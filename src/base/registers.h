/* registers.h: the processor's registers as far as they are needed to find a caller's frame.
 *
 * Those are the registers that a function preserves, because a frame may be found by any of
 * them. */
#ifndef HAK_BASE_REGISTERS_H
#define HAK_BASE_REGISTERS_H

#include "base/compiler.h"

#if defined(__x86_64__)

/* RETURN holds the function's return address; PC, in a frame made by a signal, the interrupted
 * instruction. */
enum {
  REGISTER_SP,
  REGISTER_FP,
  REGISTER_RETURN,
  REGISTER_PC = REGISTER_RETURN,
  REGISTER_RBX,
  REGISTER_R12,
  REGISTER_R13,
  REGISTER_R14,
  REGISTER_R15,
  REGISTER_COUNT
};
/* Their numbers in .eh_frame, which the processor's ABI defines. */
#define REGISTER_COLUMNS \
  { 7, 6, 16, 3, 12, 13, 14, 15 }
/* A call always leaves the return address on the stack. */
enum { RETURN_MAY_STAY_IN_REGISTER = 0, FRAME_POINTER_IS_AT_END = 1 };

/* The kernel's signal frame: the place of each register, in words from the stack pointer at the
 * instructions that end the handler, and of the link to another context, always 0. */
#define SIGNAL_FRAME_WORDS \
  { 20, 15, 21, 16, 9, 10, 11, 12 }
enum { SIGNAL_LINK_WORD = 1 };
#define SIGNAL_ENDING \
  { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 } /* mov $15, %rax; syscall: rt_sigreturn */

/* The rest of a function that only calls another, after the call: code made while the program
 * runs. */
#define TRAMPOLINE_ENDING \
  { 0x48, 0x83, 0xc4, 0x08, 0xc3 } /* add $8, %rsp; ret */
enum { TRAMPOLINE_WORDS = 1 };

/* Captures this thread's registers; returns the instruction that they belong to. */
INLINE uintptr_t registers_capture(uintptr_t value[REGISTER_COUNT]) {
  uintptr_t here;
  __asm__ volatile(
      "movq %%rsp, 0(%1)\n\tmovq %%rbp, 8(%1)\n\tmovq %%rbx, 24(%1)\n\tmovq %%r12, 32(%1)\n\t"
      "movq %%r13, 40(%1)\n\tmovq %%r14, 48(%1)\n\tmovq %%r15, 56(%1)\n\tleaq 0(%%rip), %0"
      : "=&r"(here)
      : "r"(value)
      : "memory");
  return here;
}

/* The thread's own data; on stacks that the C library makes it lies right above the first frame. */
INLINE uintptr_t thread_pointer(void) {
  uintptr_t pointer;
  __asm__("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

INLINE uintptr_t without_signature(uintptr_t return_address) { return return_address; }

/* The function that the code at an address calls first, with the result of the previous call as its
 * argument; 0 if there is none. */
enum { RESULT_CALL_BYTES = 8 };
INLINE uintptr_t result_goes_to(const uint8_t code[RESULT_CALL_BYTES], uintptr_t address) {
  enum { WIDE = 0x48, CALL = 0xe8 };
  const uint8_t *move =
      code + (*code == WIDE); /* mov %eax, %edi; mov %rax, %rdi; movslq %eax, %rdi */
  bool is_result = (move[0] == 0x89 && move[1] == 0xc7) || (move[0] == 0x63 && move[1] == 0xf8);
  const uint8_t *end = move + 2 + 1 + sizeof(int32_t);
  int32_t distance;
  if (!is_result || move[2] != CALL) return 0;
  __builtin_memcpy(&distance, end - sizeof distance, sizeof distance);
  return address + (uintptr_t)(end - code) + (uintptr_t)(intptr_t)distance;
}

#elif defined(__aarch64__)

enum { REGISTER_SP, REGISTER_FP, REGISTER_RETURN, REGISTER_PC, REGISTER_COUNT };
#define REGISTER_COLUMNS \
  { 31, 29, 30, 32 }
/* A leaf function leaves it in x30, and a signal may arrive there. */
enum { RETURN_MAY_STAY_IN_REGISTER = 1, FRAME_POINTER_IS_AT_END = 0 };

#define SIGNAL_FRAME_WORDS \
  { 70, 68, 69, 71 }
enum { SIGNAL_LINK_WORD = 17 };
#define SIGNAL_ENDING \
  { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 } /* mov x8, #139; svc #0: rt_sigreturn */
#define TRAMPOLINE_ENDING \
  { 0, 0, 0, 0 } /* no instruction: trampolines have frame pointers */
enum { TRAMPOLINE_WORDS = 0 };

INLINE uintptr_t registers_capture(uintptr_t value[REGISTER_COUNT]) {
  uintptr_t here;
  __asm__ volatile("mov %0, sp\n\tstp %0, x29, [%1]\n\tstr x30, [%1, #16]\n\tadr %0, ."
                   : "=&r"(here)
                   : "r"(value)
                   : "memory");
  return value[REGISTER_PC] = here;
}

INLINE uintptr_t thread_pointer(void) {
  uintptr_t pointer;
  __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
  return pointer;
}

/* Pointer authentication signs return addresses on the stack; older processors ignore the
 * instruction. */
INLINE uintptr_t without_signature(uintptr_t return_address) {
  register uintptr_t link __asm__("x30") = return_address;
  __asm__("hint #7" : "+r"(link)); /* xpaclri */
  return link;
}

/* The result stays in x0; an int is widened first. */
enum { RESULT_CALL_BYTES = 8 };
INLINE uintptr_t result_goes_to(const uint8_t code[RESULT_CALL_BYTES], uintptr_t address) {
  const uint32_t widen = 0x93407c00, call = 0x25; /* sxtw x0, w0; the highest bits of bl */
  uint32_t words[RESULT_CALL_BYTES / sizeof(uint32_t)];
  __builtin_memcpy(words, code, sizeof words);
  unsigned at = words[0] == widen;
  if (words[at] >> 26 != call) return 0;
  int32_t distance = (int32_t)(words[at] << 6) >> 4;
  return address + at * sizeof *words + (uintptr_t)(intptr_t)distance;
}

#else /* no way to a caller is known; an odd frame pointer ends the walk */

enum { REGISTER_SP, REGISTER_FP, REGISTER_RETURN, REGISTER_PC = REGISTER_RETURN, REGISTER_COUNT };
enum { RETURN_MAY_STAY_IN_REGISTER = 0, FRAME_POINTER_IS_AT_END = 1, SIGNAL_LINK_WORD = 0 };
#define REGISTER_COLUMNS \
  { 255, 255, 255 }
#define SIGNAL_FRAME_WORDS \
  { 0, 0, 0 }
#define SIGNAL_ENDING \
  { 0 }
#define TRAMPOLINE_ENDING \
  { 0 }
enum { TRAMPOLINE_WORDS = 0 };
INLINE uintptr_t registers_capture(uintptr_t value[REGISTER_COUNT]) {
  value[REGISTER_FP] = 1;
  return 0;
}
INLINE uintptr_t thread_pointer(void) { return 0; }
INLINE uintptr_t without_signature(uintptr_t return_address) { return return_address; }
enum { RESULT_CALL_BYTES = 1 };
INLINE uintptr_t result_goes_to(const uint8_t code[RESULT_CALL_BYTES], uintptr_t address) {
  (void)code, (void)address;
  return 0;
}

#endif

#endif
