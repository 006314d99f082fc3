/* os_linux_crash.c: the contract of os.h on Linux, where it is about signals that end the
 * process. */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/registers.h"
#include "os/os.h"
#include "os/os_linux.h"

/* As the kernel has it, with the address of the code that ends a handler: the C library's, or
 * ours. */
struct action {
  union {
    void (*plain)(int signal);
    void (*full)(int signal, siginfo_t *info, void *context);
  } handler;
  unsigned long flags;
#if ACTION_HAS_ENDING
  void (*ending)(void);
#endif
  uint64_t mask;
};
enum { GIVES_ENDING = 0x04000000 }; /* SA_RESTORER */

/* Sets an action, if there is one, and reads the one before, if it is wanted. False when the kernel
 * refuses. */
RESIDENT static bool act_on(int signal, const struct action *action, struct action *before) {
  return OS_CALL(SYS_rt_sigaction, signal, action, before, sizeof action->mask) == 0;
}

static void (*crash_seen)(const struct os_crash *crash);

static uintptr_t instruction_of(const ucontext_t *context) {
#if defined(__x86_64__)
  return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return (uintptr_t)context->uc_mcontext.pc;
#else
  (void)context;
  return 0;
#endif
}

#if defined(__aarch64__)
/* The kernel's record of the fault, one of the extra records of the context, each with a magic
 * number. */
static enum os_access access_of(const ucontext_t *context) {
  enum { SYNDROME_IS_WRITE = 1 << 6 };
  const unsigned char *at = (const unsigned char *)context->uc_mcontext.__reserved;
  const unsigned char *end = at + sizeof context->uc_mcontext.__reserved;
  uint32_t head[2]; /* magic, bytes */
  for (; at + 16 <= end; at += head[1]) {
    memcpy(head, at, sizeof head);
    if (!head[0] || head[1] < sizeof head) break;
    if (head[0] != ESR_MAGIC) continue;
    uint64_t syndrome;
    memcpy(&syndrome, at + sizeof head, sizeof syndrome);
    return syndrome & SYNDROME_IS_WRITE ? OS_ACCESS_WRITE : OS_ACCESS_READ;
  }
  return OS_ACCESS_UNKNOWN;
}
#elif defined(__x86_64__)
static enum os_access access_of(const ucontext_t *context) {
  enum { PAGE_FAULT_IS_WRITE = 2 };
  bool is_write = context->uc_mcontext.gregs[REG_ERR] & PAGE_FAULT_IS_WRITE;
  return is_write ? OS_ACCESS_WRITE : OS_ACCESS_READ;
}
#else
static enum os_access access_of(const ucontext_t *context) {
  (void)context;
  return OS_ACCESS_UNKNOWN;
}
#endif

enum { WATCHED_SIGNALS = 2 };
RESIDENT_DATA static const int watched_signals[WATCHED_SIGNALS] = {SIGSEGV, SIGBUS};

/* The handler that gets the signal after ours: the one installed before ours first, or before ours
 * last. */
RARE_DATA static struct action handler_at_first[WATCHED_SIGNALS], handler_after[WATCHED_SIGNALS];

static bool is_function(const struct action *action) {
  return action->flags & SA_SIGINFO ||
         (action->handler.plain != SIG_DFL && action->handler.plain != SIG_IGN);
}

static bool is_ours(const struct action *action);

/* The default action comes next: on running the instruction again, or on sending the signal
 * again. */
static void take_default(int signal, const siginfo_t *info) {
  struct action by_default = {.handler.plain = SIG_DFL};
  act_on(signal, &by_default, NULL);
  if (info->si_code <= 0)
    OS_CALL(SYS_tgkill, os_process_id(), os_thread_id(),
            signal); /* sent by a process: delivered when this handler returns */
}

static void hand_on(const struct action *action, int signal, siginfo_t *info, void *context) {
  struct action by_default = {.handler.plain = SIG_DFL};
  if (!is_function(action)) {
    take_default(signal, info);
    return;
  }
  if (action->flags & SA_RESETHAND) act_on(signal, &by_default, NULL);
  if (action->flags & SA_SIGINFO)
    action->handler.full(signal, info, context);
  else
    action->handler.plain(signal);
}

static void note_crash(int signal, const siginfo_t *info, void *context, bool is_handled) {
  KEEP_ERRNO(); /* the program's handler comes next */
  uintptr_t instruction = instruction_of(context);
  struct os_crash crash = {.signal_name = signal == SIGSEGV ? "SIGSEGV" : "SIGBUS",
                           .instruction = instruction,
                           .address = (uintptr_t)info->si_addr,
                           .access = access_of(context),
                           .is_in_library = os_is_in_library(instruction),
                           .is_handled = is_handled};
  crash_seen(&crash);
}

static void on_crash(int signal, siginfo_t *info, void *context) {
  static const unsigned char ending[] = SIGNAL_ENDING;
  unsigned index = signal != watched_signals[0];
  struct action now;
  act_on(signal, NULL, &now);
  /* A program that set its handler after ours may call ours as the previous one. The kernel's
   * return to what ends a signal. */
  bool is_first = memcmp((const void *)CALLER_ADDRESS(), ending, sizeof ending) == 0;
  const struct action *next = is_first ? &handler_after[index] : &handler_at_first[index];
  /* A handler that is installed first and then calls ours has not been reported yet. */
  bool is_fault = info->si_code > 0;
  if (is_fault && (is_first || !is_ours(&now)))
    note_crash(signal, info, context, is_function(next) || !is_first);
  hand_on(next, signal, info, context);
}

static bool is_ours(const struct action *action) {
  return action->flags & SA_SIGINFO && action->handler.full == on_crash;
}

static bool is_default(const struct action *action) {
  return !is_function(action) && action->handler.plain == SIG_DFL;
}

/* Installs ours with the flags and mask of the handler that it precedes. */
RESIDENT static void watch_before(unsigned index, const struct action *next,
                                  struct action *before) {
  struct action watch = {
      .handler.full = on_crash, .flags = SA_SIGINFO | SA_ONSTACK, .mask = next->mask};
  if (is_function(next)) watch.flags = (next->flags & ~(unsigned long)SA_RESETHAND) | SA_SIGINFO;
#if HAS_SIGNAL_ENDING
  watch.flags |= GIVES_ENDING;
  watch.ending = end_signal;
#endif
  act_on(watched_signals[index], &watch, before);
}

/* One call each, and no page of the tables, where no library has a handler. Threads may need the
 * handler of one that has: then it is not replaced for a moment either. */
RESIDENT void os_watch_crashes(void (*seen)(const struct os_crash *crash)) {
  KEEP_ERRNO();
  crash_seen = seen;
  for (unsigned index = 0; index < WATCHED_SIGNALS; index++) {
    struct action before = {.handler.plain = SIG_DFL};
    if (os_is_multi_threaded()) act_on(watched_signals[index], NULL, &before);
    bool is_free = is_default(&before);
    if (is_free) watch_before(index, &before, &before);
    if (is_default(&before)) continue;
    handler_at_first[index] = before;
    if (is_free) act_on(watched_signals[index], &before, NULL);
  }
}

void os_watch_first(void) {
  if (os_is_confined()) return;
  KEEP_ERRNO();
  struct action now;
  bool is_known = crash_seen && act_on(SIGSEGV, NULL, &now);
  if (!is_known || is_ours(&now) || !(is_function(&now) || is_default(&now))) return;
  handler_after[0] = now; /* several threads may write the same */
  watch_before(0, &now, NULL);
}
