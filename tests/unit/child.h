/* child.h: a part of a test in a process of its own: with an untouched library, or because it
 * dies. */
#ifndef CHILD_H
#define CHILD_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

struct child {
  int status;       /* as waitpid gives it */
  char said[16384]; /* on standard error; who says more gets SIGPIPE */
};

/* cmocka's assertions and signal handlers mean nothing in a child: REQUIRE ends it instead. */
#define REQUIRE(condition) \
  ((condition) ? (void)0   \
               : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), abort()))

static inline void child_read(struct child *child, int descriptor) {
  size_t length = 0, most = sizeof child->said - 1;
  ssize_t more;
  while (length < most && (more = read(descriptor, child->said + length, most - length)) > 0)
    length += (size_t)more;
  child->said[length] = 0;
}

/* Runs body(argument) in a forked child, which exits with 0 after it. */
static inline struct child child_run(void (*body)(const void *), const void *argument) {
  struct child child;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  pid_t id = fork();
  assert_true(id >= 0);
  if (id == 0) {
    signal(SIGABRT, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body(argument);
    _exit(0);
  }
  close(ends[1]);
  child_read(&child, ends[0]);
  close(ends[0]);
  assert_int_equal(waitpid(id, &child.status, 0), id);
  return child;
}

/* The child's exit status; the test fails when it did not exit by itself. */
static inline int child_exit_status(const struct child *child) {
  if (!WIFEXITED(child->status)) fail_msg("status %#x: %s", (unsigned)child->status, child->said);
  return WEXITSTATUS(child->status);
}

/* The body must run to its end. */
static inline void assert_child_succeeds(void (*body)(const void *), const void *argument) {
  struct child child = child_run(body, argument);
  if (child_exit_status(&child) != 0) fail_msg("exit %#x: %s", (unsigned)child.status, child.said);
}

/* A child that the body has forked. */
static inline void require_child_succeeded(pid_t child) {
  int status;
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* Threads run body(argument) together, all to their ends; their arguments are `bytes` apart. */
static inline void on_threads(unsigned count, void *(*body)(void *), void *arguments,
                              size_t bytes) {
  enum { ON_THREADS_MAX = 64 };
  pthread_t threads[ON_THREADS_MAX];
  REQUIRE(count <= ON_THREADS_MAX);
  for (unsigned index = 0; index < count; index++)
    REQUIRE(!pthread_create(&threads[index], NULL, body,
                            (void *)((uintptr_t)arguments + index * bytes)));
  for (unsigned index = 0; index < count; index++) REQUIRE(!pthread_join(threads[index], NULL));
}

/* Runs body(argument) on a thread that ends before this returns. */
static inline void on_a_thread(void *(*body)(void *), void *argument) {
  on_threads(1, body, argument, 0);
}

/* CHILD(name) { … } is such a body without an argument, BARE_TEST(name) { … } a test of one;
 * CHILD_TEST(name) { … } is a test of a body that the file's BEFORE(child) { … } precedes, in its
 * process. */
#define CHILD(name) static void name(UNIT_UNUSED const void *unused)
#define BARE_TEST(name)                             \
  CHILD(name);                                      \
  TEST(name) { assert_child_succeeds(name, NULL); } \
  CHILD(name)
#define CHILD_BODY(name)                        \
  static void name##_body(void);                \
  CHILD(name) {                                 \
    if (unit.before_child) unit.before_child(); \
    name##_body();                              \
  }
#define CHILD_TEST(name)                            \
  CHILD_BODY(name)                                  \
  TEST(name) { assert_child_succeeds(name, NULL); } \
  static void name##_body(void)

/* CHILD_TESTS(name, type, parameter, value, …) { … } is a test of a body with a parameter: a child
 * for each value, which BEFORE(child) does not precede, as the value may have to be set first. */
#define CHILD_TESTS(name, type, parameter, ...)                              \
  static void name##_with(type parameter);                                   \
  static void name(const void *value) { name##_with(*(type const *)value); } \
  TEST(name) {                                                               \
    type const values[] = {__VA_ARGS__};                                     \
    for (size_t at = 0; at < sizeof values / sizeof *values; at++)           \
      assert_child_succeeds(name, &values[at]);                              \
  }                                                                          \
  static void name##_with(type parameter)

/* The lines of a call stack, or of the options that show one, alone. */
static inline bool is_stack(const char *text) {
  static const char margin[] = "hakmem:   ";
  for (; *text; text = strchr(text, '\n') + 1)
    if (strncmp(text, margin, sizeof margin - 1) != 0 || !strchr(text, '\n')) return false;
  return true;
}

/* The body must end in abort after exactly one line, in which `parts` (NULL-terminated) occur, and
 * a call stack at most. */
static inline void assert_child_reports(void (*body)(const void *), const void *argument,
                                        const char *const *parts) {
  struct child child = child_run(body, argument);
  if (!WIFSIGNALED(child.status) || WTERMSIG(child.status) != SIGABRT)
    fail_msg("no abort, status %#x: %s", (unsigned)child.status, child.said);
  const char *end = strchr(child.said, '\n');
  if (!end || !is_stack(end + 1)) fail_msg("not one line: %s", child.said);
  for (; *parts; parts++)
    if (!strstr(child.said, *parts)) fail_msg("\"%s\" is not in: %s", *parts, child.said);
}

/* REPORT_TEST(name, "part", …) { … } is a test like CHILD_TEST of a body that ends so. */
#define REPORT_TEST(name, ...)                                                               \
  CHILD_BODY(name)                                                                           \
  TEST(name) { assert_child_reports(name, NULL, (const char *const[]){__VA_ARGS__, NULL}); } \
  static void name##_body(void)

#endif
