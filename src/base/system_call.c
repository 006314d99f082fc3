#include "base/system_call.h"

/* One function, not inlined: it is small beside the call, and tests put their own in its place
 * (tests/kernel_calls.h). */
#if defined(__x86_64__)

RESIDENT NOINLINE long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long fourth __asm__("r10") = d;
  register long fifth __asm__("r8") = e;
  register long sixth __asm__("r9") = f;
  long answer;
  __asm__ volatile("syscall"
                   : "=a"(answer)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  return answer;
}

/* The instruction before it counts as the handler's caller where a stack is read, so there is
 * one. */
__asm__(
    ".pushsection .text.end_signal, \"ax\", @progbits\n\t"
    "nop\n\t"
    ".p2align 4\n\t"
    ".hidden end_signal\n\t"
    ".globl end_signal\n\t"
    ".type end_signal, @function\n"
    "end_signal:\n\t"
    "movq $15, %rax\n\t" /* rt_sigreturn */
    "syscall\n\t"
    ".size end_signal, . - end_signal\n\t"
    ".popsection");

#elif defined(__aarch64__)

RESIDENT NOINLINE long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long which __asm__("x8") = number;
  register long first __asm__("x0") = a;
  register long second __asm__("x1") = b;
  register long third __asm__("x2") = c;
  register long fourth __asm__("x3") = d;
  register long fifth __asm__("x4") = e;
  register long sixth __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(first)
                   : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "memory");
  return first;
}

#else /* an unknown processor (cmake/machine.cmake warns): the C library's function */

#include <errno.h>

long syscall(long number, ...);

NOINLINE long system_call(long number, long a, long b, long c, long d, long e, long f) {
  int saved_errno = errno;
  long answer = syscall(number, a, b, c, d, e, f);
  if (answer == -1) answer = -errno;
  errno = saved_errno;
  return answer;
}

#endif
