/* silent.c: which system calls unwinding makes: none on a thread's own stack once that is known,
 * only futex on one that the program made.  Any other call ends the process (SIGSYS). */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "stack/unwind.h"

enum { FRAMES_MAX = 100 };

static void look(void) {
  uintptr_t frames[FRAMES_MAX];
  bool is_complete;
  errno = 77;
  size_t count = unwind_stack(frames, FRAMES_MAX, &is_complete);
  if (!count || !is_complete || errno != 77) abort();
}

__attribute__((noinline)) static int recurse(int depth) {
  volatile char frame[1000];
  frame[0] = 1;
  if (depth) return recurse(depth - 1) + frame[0];
  look();
  return frame[0];
}

/* After it only these calls are let through, and the end. */
static void allow(int call) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) abort();
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) abort();
}

static void *on_own_stack(void *argument) {
  recurse(20);
  allow(SYS_exit);
  for (int round = 0; round < 1000; round++) recurse(round % 21);
  _exit(0);
  return argument;
}

static char stack[1 << 17];

static void on_made_stack(void) {
  allow(SYS_futex);
  for (int round = 0; round < 1000; round++) recurse(round % 21);
  _exit(0);
}

/* silent main | thread | context */
int main(int count, char **words) {
  char which = count > 1 ? words[1][0] : 'm';
  pthread_t thread;
  ucontext_t context, back;
  if (which == 'm') on_own_stack(NULL);
  if (which == 't') {
    pthread_create(&thread, NULL, on_own_stack, NULL);
    pthread_join(thread, NULL);
  }
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = sizeof stack;
  context.uc_link = &back;
  makecontext(&context, on_made_stack, 0);
  swapcontext(&back, &context);
  return 1;
}
