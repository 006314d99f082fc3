/* src/os/os_linux_keeper: a killed process's memory is there as long as the tool wants, and nothing
 * else of it is. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "child.h"
#include "os/os.h"

enum { BEFORE = 7, LAST = 42, PATIENCE_MS = 20000 };

static char folder[] = "/tmp/hakmem-keeper-XXXXXX";
static char path[128];
static int listener;
static volatile int word = BEFORE;

BEFORE(all) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int yes = 1;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/socket", folder);
  memcpy(address.sun_path, path, strlen(path) + 1);
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(listener, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
  assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(listener, 8), 0);
}

AFTER(all) {
  close(listener);
  unlink(path);
  assert_int_equal(rmdir(folder), 0);
}

static int lowest_descriptor(void) {
  int descriptor = dup(STDERR_FILENO);
  close(descriptor);
  return descriptor;
}

/* Kept, and killed. */
CHILD(be_killed) {
  sigset_t blocked, found;
  int descriptor = lowest_descriptor();
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  errno = 77;
  REQUIRE(os_start_keeper(path, 0));
  REQUIRE(errno == 77);
  REQUIRE(lowest_descriptor() == descriptor);
  sigprocmask(SIG_SETMASK, NULL, &found);
  REQUIRE(sigismember(&found, SIGUSR1) && !sigismember(&found, SIGTERM));
  REQUIRE(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD);
  word = LAST;
  raise(SIGKILL);
}

/* The keeper's number, which comes with its byte. */
static pid_t keeper_of(int connection) {
  char byte, control[CMSG_SPACE(sizeof(struct ucred))];
  struct iovec piece = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct ucred sender;
  assert_int_equal(recvmsg(connection, &message, 0), 1);
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  assert_non_null(head);
  memcpy(&sender, CMSG_DATA(head), sizeof sender);
  return sender.pid;
}

static int word_of(pid_t process) {
  int found = 0;
  struct iovec here = {&found, sizeof found}, there = {(void *)(uintptr_t)&word, sizeof found};
  return process_vm_readv(process, &here, 1, &there, 1, 0) == sizeof found ? found : -1;
}

static bool has_ended(pid_t process) {
  char name[64], stat[256];
  snprintf(name, sizeof name, "/proc/%d/stat", (int)process);
  os_read_file(name, stat, sizeof stat);
  const char *state = strrchr(stat, ')');
  return !state || state[2] == 'Z';
}

TEST(memory_outlives_a_killed_process) {
  /* Its standard error is a pipe here, and has ended: the keeper does not have it. */
  struct child child = child_run(be_killed, NULL);
  if (!WIFSIGNALED(child.status) || WTERMSIG(child.status) != SIGKILL) fail_msg("%s", child.said);
  int connection = accept(listener, NULL, NULL);
  assert_true(connection >= 0);
  pid_t keeper = keeper_of(connection);
  assert_int_equal(word_of(keeper), LAST);
  assert_int_equal(word, BEFORE);
  kill(keeper, SIGTERM); /* takes none */
  assert_false(has_ended(keeper));
  assert_int_equal(word_of(keeper), LAST);
  close(connection);
  for (unsigned waited_ms = 0; !has_ended(keeper) && waited_ms < PATIENCE_MS; waited_ms++)
    os_sleep_ms(1);
  assert_true(has_ended(keeper));
}

/* Once more in a child: its memory is another one. */
CHILD(fork_and_be_killed) {
  REQUIRE(os_start_keeper(path, 0));
  pid_t child = fork();
  if (child == 0) {
    REQUIRE(os_start_keeper(path, 0));
    word = LAST;
    raise(SIGKILL);
  }
  REQUIRE(waitpid(child, NULL, 0) == child);
}

TEST(a_forked_child_has_its_own) {
  assert_child_succeeds(fork_and_be_killed, NULL);
  int first = accept(listener, NULL, NULL), second = accept(listener, NULL, NULL);
  assert_int_equal(word_of(keeper_of(first)), BEFORE);
  assert_int_equal(word_of(keeper_of(second)), LAST);
  close(first);
  close(second);
}

CHILD_TEST(find_nobody) {
  char long_path[256];
  memset(long_path, 'x', sizeof long_path);
  long_path[sizeof long_path - 1] = 0;
  int descriptor = lowest_descriptor();
  errno = 77;
  REQUIRE(!os_start_keeper("/nowhere/at/all", 0));
  REQUIRE(!os_start_keeper(long_path, 0));
  REQUIRE(!os_start_keeper("/dev/null", 0));
  REQUIRE(errno == 77);
  REQUIRE(lowest_descriptor() == descriptor);
  REQUIRE(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD);
}