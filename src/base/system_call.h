/* system_call.h: the way to the kernel, by the processor's own instruction. The C library's
 * functions would be the program's: a library that is loaded before may have replaced them by some
 * that allocate, or wait for a thread that does. */
#ifndef HAK_BASE_SYSTEM_CALL_H
#define HAK_BASE_SYSTEM_CALL_H

#include "base/compiler.h"

/* The kernel's answer: from -4095 to -1 a negated errno. errno itself is left alone. No
 * cancellation point. */
HIDDEN long system_call(long number, long a, long b, long c, long d, long e, long f);

/* The code that a signal handler returns to, where the kernel needs its address: its instructions
 * are SIGNAL_ENDING (base/registers.h). */
#if defined(__x86_64__)
#define HAS_SIGNAL_ENDING 1
HIDDEN void end_signal(void);
#else
#define HAS_SIGNAL_ENDING 0
#endif

/* Whether the kernel's record of a signal's action has room for that address. */
#if defined(__riscv) || defined(__loongarch__)
#define ACTION_HAS_ENDING 0
#else
#define ACTION_HAS_ENDING 1
#endif

/* The names of functions that the kernel maps into each process (the vDSO), with which some calls
 * need no entry to the kernel. */
#if defined(__aarch64__)
#define VDSO_CLOCK_GETTIME "__kernel_clock_gettime"
#define VDSO_GETCPU "" /* it has none */
#else
#define VDSO_CLOCK_GETTIME "__vdso_clock_gettime"
#define VDSO_GETCPU "__vdso_getcpu"
#endif

#endif
