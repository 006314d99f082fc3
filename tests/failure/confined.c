/* A program that puts itself under a filter of system calls, and goes on allocating.
 *
 *   argv[1]  what the filter does with other calls: kill, eperm, enosys
 *   argv[2]  how it comes: prctl; tsync (seccomp(2) for all threads); raw (not through the C
 *            library's prctl); fork (prctl, in a forked child); exec (there before the program)
 *   argv[3]  single; threads; or ended: there were some before, and the filter is for who starts
 *            none
 *   argv[4]  the calls that it lets pass, with commas between */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "api/sizes.h"
#include "concurrency/threads.h"

enum { FILTER_MAX = 80, BLOCKS = 300, ROUND_MS = 20, DECAY_MS = 400 };

/* ---- the filter ------------------------------------------------------------------------------ */

#define CALL(name) \
  { #name, SYS_##name }
static const struct call {
  const char *name;
  unsigned number;
} calls[] = {
    CALL(mmap),
    CALL(munmap),
    CALL(mremap),
    CALL(mprotect),
    CALL(madvise),
    CALL(futex),
    CALL(brk),
    CALL(getrandom),
    CALL(membarrier),
    CALL(mincore),
    CALL(process_vm_readv),
    CALL(sched_yield),
    CALL(tgkill),
    /* the program's own, and the C library's */
    CALL(write),
    CALL(exit),
    CALL(exit_group),
    CALL(clone),
    CALL(clone3),
    CALL(set_robust_list),
    CALL(rseq),
    CALL(rt_sigprocmask),
    CALL(rt_sigreturn),
};
static const char own_calls[] = "write,exit,exit_group,rt_sigreturn";
/* The calls of a program that starts threads. */
static const char thread_calls[] = "clone,clone3,set_robust_list,rseq,rt_sigprocmask";

static struct sock_filter filter[FILTER_MAX];
static unsigned filter_count;

static void add(struct sock_filter instruction) {
  CHECK(filter_count < FILTER_MAX);
  filter[filter_count++] = instruction;
}

static void add_calls(const char *names, unsigned action) {
  char text[400], *rest = NULL;
  CHECK(strlen(names) < sizeof text);
  strcpy(text, names);
  for (char *name = strtok_r(text, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
    size_t i = 0;
    while (i < COUNT_OF(calls) && strcmp(calls[i].name, name) != 0) i++;
    CHECK_MSG(i < COUNT_OF(calls), "%s", name);
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1));
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
  }
}

static unsigned action_of(const char *name) {
  if (strcmp(name, "kill") == 0) return SECCOMP_RET_KILL_PROCESS;
  return SECCOMP_RET_ERRNO | (strcmp(name, "eperm") == 0 ? EPERM : ENOSYS);
}

static struct sock_fprog begin_filter(void) {
  filter_count = 0;
  add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
  return (struct sock_fprog){.filter = filter};
}

static void confine(const char *action, const char *how, const char *allowed, bool has_threads) {
  struct sock_fprog program = begin_filter();
  add_calls(own_calls, SECCOMP_RET_ALLOW);
  if (has_threads) add_calls(thread_calls, SECCOMP_RET_ALLOW);
  add_calls(allowed, SECCOMP_RET_ALLOW);
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action_of(action)));
  program.len = (unsigned short)filter_count;
  if (strcmp(how, "raw") == 0) {
    CHECK(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  } else {
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  }
  if (strcmp(how, "tsync") == 0 || strcmp(how, "raw") == 0) {
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
  } else {
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
  }
}

/* As a service manager does it: a call that services hardly need ends the process; then the program
 * begins. */
static void run_under_filter(char **arguments) {
  struct sock_fprog program = begin_filter();
  add_calls("membarrier,mincore,process_vm_readv,sched_yield", action_of(arguments[1]));
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  program.len = (unsigned short)filter_count;
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
  char *again[] = {arguments[0], arguments[1], (char *)(uintptr_t) "none",
                   arguments[3], arguments[4], NULL};
  execv("/proc/self/exe", again);
  CHECK(false);
}

/* ---- loads ----------------------------------------------------------------------------------- */

static const size_t sizes[] = {16,       100,       1000,    5000,    30000,  60 * KIB,
                               60 * KIB, 200 * KIB, 1 * MIB, 2 * MIB, 5 * MIB};

/* By the one call that sleeps and that all filters let pass. */
static void sleep_ms(long milliseconds) {
  static const uint32_t word;
  const struct timespec span = {.tv_nsec = milliseconds * 1000000};
  CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &span, NULL, 0) == -1);
}

static void *allocate_and_free(void *unused) {
  char *blocks[BLOCKS];
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < BLOCKS; i++) {
      size_t size = sizes[i % COUNT_OF(sizes)];
      blocks[i] = i % 5 == 0 ? calloc(1, size) : malloc(size);
      CHECK(blocks[i] != NULL && (i % 5 != 0 || (blocks[i][0] == 0 && blocks[i][size - 1] == 0)));
      memset(blocks[i], 7, size < 9000 ? size : 9000);
    }
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[(i * 7) % BLOCKS]);
    sleep_ms(ROUND_MS);
  }
  for (int i = 0; i < 1000; i++) {
    free(malloc(100000)); /* density is looked at, now and then */
  }
  return unused;
}

static void grow(void) {
  char *block = NULL;
  for (size_t bytes = 100; bytes < 60 * MIB; bytes *= 3) {
    void *neighbour = malloc(bytes);
    block = realloc(block, bytes);
    CHECK(block != NULL && neighbour != NULL);
    CHECK(bytes == 100 || (block[0] == 5 && block[bytes / 3 - 1] == 5));
    block[0] = block[bytes - 1] = 5;
    free(neighbour);
  }
  CHECK((block = realloc(block, 100)) != NULL);
  free(block);
}

static void all_loads(bool has_threads) {
  allocate_and_free(NULL);
  grow();
  if (has_threads) threads_run(4, allocate_and_free);
  malloc_trim(0);
  CHECK(malloc((size_t)1 << 46) == NULL && errno == ENOMEM); /* all that is free was given back */
  allocate_and_free(NULL);
  CHECK(mallinfo2().arena > 0);
}

/* ---- the program ----------------------------------------------------------------------------- */

int main(int count, char **arguments) {
  CHECK(count == 5);
  const char *how = arguments[2];
  bool has_threads = strcmp(arguments[3], "threads") == 0;
  bool had_threads = has_threads || strcmp(arguments[3], "ended") == 0;
  if (strcmp(how, "exec") == 0) run_under_filter(arguments);
  void *before[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) before[i] = malloc(sizes[i % COUNT_OF(sizes)]);
  if (had_threads) thread_run(allocate_and_free, NULL);
  pid_t child = strcmp(how, "fork") == 0 ? fork() : 0;
  if (child != 0) {
    child_join(child);
    return 0;
  }
  if (strcmp(how, "none") != 0) confine(arguments[1], how, arguments[4], has_threads);
  for (size_t i = 0; i < BLOCKS; i++) free(before[i]);
  all_loads(has_threads);
  if (had_threads && !has_threads) {
    sleep_ms(DECAY_MS); /* there is nothing left to do for threads of the library */
    all_loads(has_threads);
  }
  return 0;
}
