/* stacks.c: every kind of stack that a C program can have; each is unwound at its top and compared
 * with backtrace.
 *
 * Prints how many were compared. */
#include <alloca.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "compare.h"

enum { STACK_BYTES = 256 << 10, TINY_STACK_BYTES = 32 << 10 };

static void *map_stack(size_t bytes) {
  void *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return stack == MAP_FAILED ? NULL : stack;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *where = "main";
static void here(void) { compare(where); }

__attribute__((noinline)) static unsigned recurse(unsigned depth, void (*top)(void)) {
  volatile char local[24];
  local[0] = (char)depth;
  if (depth)
    recurse(depth - 1, top);
  else
    top();
  return (unsigned)local[0];
}

/* A frame of a size that only its own frame pointer knows. */
__attribute__((noinline)) static void with_alloca(size_t bytes) {
  char *block = alloca(bytes);
  memset(block, 0x5a, bytes);
  here();
  if (block[bytes / 2] != 0x5a) abort();
}

/* A frame whose alignment is more than a caller's: its end is found by a word that it keeps. */
__attribute__((noinline)) static void aligned(size_t bytes) {
  volatile char line[64] __attribute__((aligned(64)));
  char *block = alloca(bytes);
  line[0] = 1;
  memset(block, 1, bytes);
  recurse(3, here);
  if (line[0] != 1) abort();
}

__attribute__((noinline)) static void large_frame(void) {
  volatile char block[100000];
  block[0] = block[99999] = 1;
  here();
  if (!block[99999]) abort();
}

/* ---- through the C library ------------------------------------------------------------------- */

static int compare_numbers(const void *left, const void *right) {
  here();
  return *(const int *)left - *(const int *)right;
}

static void visit(const void *node, VISIT which, int depth) {
  (void)node, (void)which, (void)depth;
  here();
}

static void callbacks(void) {
  int numbers[] = {5, 3, 9, 1, 7, 2}, key = 7;
  void *tree = NULL;
  qsort(numbers, 6, sizeof *numbers, compare_numbers);
  if (!bsearch(&key, numbers, 6, sizeof *numbers, compare_numbers)) abort();
  for (int index = 0; index < 4; index++) tsearch(&numbers[index], &tree, compare_numbers);
  twalk(tree, visit);
  while (tree) tdelete(*(void **)tree, &tree, compare_numbers);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *thread_body(void *argument) {
  (void)argument;
  recurse(20, here);
  with_alloca(3000);
  callbacks();
  return NULL;
}

static void run_thread(pthread_attr_t *attributes) {
  pthread_t thread;
  if (pthread_create(&thread, attributes, thread_body, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

static void threads(void) {
  pthread_attr_t attributes;
  run_thread(NULL);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, TINY_STACK_BYTES + STACK_BYTES / 4);
  run_thread(&attributes);
  void *stack = map_stack(STACK_BYTES);
  pthread_attr_setstack(&attributes, stack, STACK_BYTES);
  run_thread(&attributes);
  munmap(stack, STACK_BYTES);
  pthread_attr_destroy(&attributes);
}

static void *deep_body(void *argument) {
  (void)argument;
  recurse(5000, here);
  return NULL;
}

/* ---- signals --------------------------------------------------------------------------------- */

static void on_signal(int signal) {
  (void)signal;
  recurse(2, here);
}

static void on_signal_info(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info, (void)context;
  here();
}

static void raise_another(int signal) {
  (void)signal;
  raise(SIGUSR2);
  here();
}

static void handle(int signal, void (*handler)(int), void (*with_info)(int, siginfo_t *, void *),
                   int flags) {
  struct sigaction action = {.sa_flags = flags};
  if (with_info) {
    action.sa_sigaction = with_info;
    action.sa_flags |= SA_SIGINFO;
  } else {
    action.sa_handler = handler;
  }
  if (sigaction(signal, &action, NULL) != 0) abort();
}

static void raise_both(void) {
  raise(SIGUSR1);
  raise(SIGUSR2);
}

static void signals(void) {
  static char alternate[STACK_BYTES];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  for (int flags = 0; flags <= SA_ONSTACK; flags += SA_ONSTACK) {
    if (flags && sigaltstack(&stack, NULL) != 0) abort();
    handle(SIGUSR1, on_signal, NULL, flags);
    handle(SIGUSR2, NULL, on_signal_info, flags);
    recurse(3, raise_both);
    handle(SIGUSR1, raise_another, NULL, flags);
    recurse(3, raise_both);
  }
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, NULL);
}

/* ---- stacks that the program makes ----------------------------------------------------------- */

static ucontext_t outside, inside;

static void coroutine(void) {
  recurse(4, here);
  swapcontext(&inside, &outside);
  callbacks();
}

static void contexts(void) {
  for (size_t bytes = TINY_STACK_BYTES; bytes <= STACK_BYTES; bytes *= 2) {
    char *stack = map_stack(bytes);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = bytes;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
    here();
    swapcontext(&outside, &inside);
    munmap(stack, bytes);
  }
}

static void *contexts_body(void *argument) {
  contexts();
  return argument;
}

/* ---- the process ----------------------------------------------------------------------------- */

static void at_exit(void) { compare("an exit handler"); }
__attribute__((constructor)) static void at_start(void) {
  unwind_prepare();
  compare("a constructor");
}

static void in_child(void) {
  pid_t child = fork();
  int status;
  if (child == 0) {
    recurse(5, here);
    _exit(0);
  }
  if (waitpid(child, &status, 0) != child || status != 0) abort();
}

static void *fork_body(void *argument) {
  in_child();
  return argument;
}

static void run_in_thread(void *(*body)(void *)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

#define TRY(what)    \
  do {               \
    where = (#what); \
    what;            \
  } while (0)

int main(void) {
  atexit(at_exit);
  TRY(here());
  TRY(recurse(100, here));
  TRY(recurse(5000, here)); /* cut off at FRAMES_MAX */
  TRY(with_alloca(100));
  TRY(with_alloca(50000));
  TRY(aligned(100));
  TRY(large_frame());
  TRY(callbacks());
  TRY(threads());
  TRY(run_in_thread(deep_body));
  TRY(signals());
  TRY(contexts());
  TRY(run_in_thread(contexts_body));
  TRY(in_child());
  TRY(run_in_thread(fork_body));
  where = "main again";
  here();
  printf("%lu stacks are equal\n", stacks_compared);
  return 0;
}
