/* A forked child's keeper (src/os/os_linux_keeper.c) shares its memory, errno included, and is held
 * up wherever it calls the kernel: the child goes on when the keeper has settled, however late that
 * is and whatever signal comes, and its errno is its own from then on. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "api/check.h"
#include "kernel_calls.h"

enum { HELD_UP_MS = 300, PATIENCE_MS = 20000, OWN_ERRNO = 77, KEEPERS_ERRNO = 99 };

static bool is_forking;
static atomic_int maker, keeper;
static atomic_bool has_gone_on, has_sent, is_asleep;

static long call(long number, const long arguments[6]) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = arguments[3];
  register long r8 __asm__("r8") = arguments[4];
  register long r9 __asm__("r9") = arguments[5];
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(r10),
                     "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = arguments[0];
  register long x1 __asm__("x1") = arguments[1];
  register long x2 __asm__("x2") = arguments[2];
  register long x3 __asm__("x3") = arguments[3];
  register long x4 __asm__("x4") = arguments[4];
  register long x5 __asm__("x5") = arguments[5];
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
#else
#error "no way to the kernel is known"
#endif
}

static int own_number(void) { return (int)call(SYS_getpid, (const long[6]){0}); }

/* Touches no errno. */
static void await(atomic_bool *state, int most_ms) {
  struct timespec one_ms = {.tv_nsec = 1000000};
  for (; !atomic_load(state) && most_ms; most_ms--)
    call(SYS_nanosleep, (const long[6]){(long)&one_ms});
}

static void hold_up(long number) {
  if (number == SYS_connect) atomic_store(&maker, own_number());
  if (number == SYS_setsid) {
    atomic_store(&keeper, own_number());
    call(SYS_kill, (const long[6]){atomic_load(&maker), SIGUSR1}); /* its wait is interrupted */
    await(&has_gone_on, HELD_UP_MS);
    errno = KEEPERS_ERRNO;
  }
  if (own_number() != atomic_load(&keeper)) return;
  if (number == SYS_sendto) atomic_store(&has_sent, true);
  if (number == SYS_futex) await(&has_gone_on, PATIENCE_MS);
  if (number == SYS_ppoll) atomic_store(&is_asleep, true);
}

static long take_call(long number, long a, long b, long c, long d, long e, long f) {
  if (is_forking) hold_up(number);
  return call(number, (const long[6]){a, b, c, d, e, f});
}

static void on_signal(int signal) { (void)signal; }

static void be_child(void) {
  bool has_settled = atomic_load(&has_sent);
  errno = OWN_ERRNO;
  atomic_store(&has_gone_on, true);
  await(&is_asleep, PATIENCE_MS);
  CHECK(atomic_load(&is_asleep));
  CHECK(has_settled);
  CHECK_MSG(errno == OWN_ERRNO, "errno %d", errno);
  _exit(0);
}

int main(void) {
  int status;
  free(malloc(1));
  CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
  take_kernel_calls(take_call);
  is_forking = true;
  pid_t pid = fork();
  if (pid == 0) be_child();
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
  return 0;
}
