/* hakmem's helper thread disturbs no program.  argv[1] says what a program does that has one:
 *   ends       main leaves by pthread_exit, the last worker returns: the process ends, at once
 *              and with status 0
 *   unshare    after the join, what only a process with one thread may do
 *   inherits   a worker of real-time priority, pinned to one processor, makes the helper start
 *   goes       the same, and nothing is left to be given back: the helper ends by itself
 *   setuid     a worker changes the user of all threads, for which the C library interrupts each
 *   limit      as many threads as may be, though the helper has one of them */
#include <dirent.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "api/sizes.h"
#include "concurrency/threads.h"

enum { LIMIT_S = 20, BLOCKS = 64, LOOKS = 2000, LOOK_US = 1000, REAL_TIME_PRIORITY = 5 };

/* The kernel's number of the thread of that name, 0 when there is none.  What is opened stays open:
 * opendir's buffer is a Large block, and to take and free it at each look would be work for the
 * helper. */
static int find_thread(const char *wanted) {
  static DIR *threads;
  static pid_t opened_by;
  int found = 0;
  if (opened_by != getpid()) threads = opendir("/proc/self/task");
  opened_by = getpid();
  CHECK(threads != NULL);
  rewinddir(threads);
  for (struct dirent *entry; (entry = readdir(threads));) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE *file = fopen(path, "r");
    if (!file) continue;
    if (fgets(name, sizeof name, file) && strcmp(name, wanted) == 0) found = atoi(entry->d_name);
    fclose(file);
  }
  return found;
}

/* Enough for it to start, and something for it to do. */
static void make_it_start(void) {
  static void *blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = MUST(malloc(MIB + i));
    memset(blocks[i], 1, MIB);
  }
  for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
  for (size_t i = 0; i < BLOCKS; i++) free(malloc(100 * KIB * (i % 7 + 1)));
}

static int wait_for_helper(void) {
  for (size_t look = 0; look < LOOKS; look++, usleep(LOOK_US)) {
    int helper = find_thread("hakmem\n");
    if (helper) return helper;
  }
  return 0;
}

static void *work(void *unused) {
  make_it_start();
  CHECK_MSG(wait_for_helper() != 0, "no helper has started");
  return unused;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void *work_and_return_last(void *unused) {
  work(unused);
  usleep(100000); /* main is gone */
  return unused;
}

/* As the program's own last thread would do it: the helper has no signals. */
static void look_who_exits(void) {
  sigset_t blocked;
  CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
  CHECK_MSG(!sigismember(&blocked, SIGTERM), "the helper does what is to be done at exit");
}

static int end_without_main(void) {
  pid_t pid = fork();
  if (pid == 0) {
    alarm(LIMIT_S);
    CHECK(atexit(look_who_exits) == 0);
    thread_start(work_and_return_last, NULL);
    pthread_exit(NULL);
  }
  child_join(pid); /* a helper that kept the process alive has the alarm end it */
  return 0;
}

/* ---- unshare --------------------------------------------------------------------------------- */

static int unshare_after_join(void) {
  thread_run(work, NULL);
  CHECK_MSG(unshare(CLONE_NEWUSER) == 0 || errno == EPERM || errno == ENOSPC, "unshare: %s",
            strerror(errno));
  return 0;
}

/* Alone again, and nothing left to be given back: it goes by itself (a raw call sees no
 * wrapper). */
static int go_when_done(void) {
  thread_run(work, NULL);
  for (size_t look = 0; look < 6 * LOOKS; look++, usleep(LOOK_US)) {
    if (look % 100 == 0) free(malloc(MIB * 3)); /* a little goes on */
    if (look > LOOKS && !find_thread("hakmem\n")) return 0;
    if (look > LOOKS) usleep(100 * LOOK_US);
  }
  CHECK_MSG(false, "the helper is still there");
  return 1;
}

static void *change_user(void *unused) {
  work(unused);
  CHECK(setuid(getuid()) == 0);
  return unused;
}

/* ---- inherits -------------------------------------------------------------------------------- */

static cpu_set_t all_processors;

static void *check_what_it_inherits(void *unused) {
  make_it_start();
  int helper = wait_for_helper();
  CHECK(helper != 0);
  cpu_set_t its;
  for (size_t look = 0; look < LOOKS; look++, usleep(LOOK_US)) {
    CHECK(sched_getaffinity(helper, sizeof its, &its) == 0);
    if (CPU_EQUAL(&its, &all_processors) && sched_getscheduler(helper) == SCHED_OTHER)
      return unused;
  }
  CHECK_MSG(false, "%d processors, policy %d", CPU_COUNT(&its), sched_getscheduler(helper));
  return unused;
}

static int pin_and_start(void) {
  CHECK(sched_getaffinity(0, sizeof all_processors, &all_processors) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
    if (CPU_ISSET(i, &all_processors)) CPU_SET(i, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
  struct sched_param priority = {.sched_priority = REAL_TIME_PRIORITY};
  bool is_real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
  thread_run(check_what_it_inherits, NULL);
  puts(is_real_time ? "real time" : "no real time");
  return 0;
}

/* ---- limit ----------------------------------------------------------------------------------- */

static sem_t may_end;
static void *wait_for_the_end(void *unused) {
  CHECK(sem_wait(&may_end) == 0);
  return unused;
}

/* One thread of ours and the helper are there, and one more may be: ours. */
static int use_up_the_limit(void) {
  enum { NOBODY = 54321 };
  struct rlimit limit = {.rlim_cur = 3, .rlim_max = 3};
  pthread_t first, second;
  CHECK(sem_init(&may_end, 0, 0) == 0);
  CHECK(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0);
  first = thread_start(wait_for_the_end, NULL);
  make_it_start();
  CHECK(wait_for_helper() != 0);
  CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
  int error = pthread_create(&second, NULL, wait_for_the_end, NULL);
  CHECK_MSG(error == 0, "the helper has the program's thread: %s", strerror(error));
  sem_post(&may_end);
  sem_post(&may_end);
  thread_join(first);
  thread_join(second);
  make_it_start();
  CHECK(find_thread("hakmem\n") == 0); /* refused once: none */
  return 0;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  alarm(LIMIT_S * 2);
  if (strcmp(argv[1], "ends") == 0) return end_without_main();
  if (strcmp(argv[1], "unshare") == 0) return unshare_after_join();
  if (strcmp(argv[1], "goes") == 0) return go_when_done();
  if (strcmp(argv[1], "inherits") == 0) return pin_and_start();
  if (strcmp(argv[1], "setuid") == 0) return thread_run(change_user, NULL), 0;
  if (strcmp(argv[1], "limit") == 0) return use_up_the_limit();
  CHECK_MSG(false, "%s", argv[1]);
  return 1;
}
