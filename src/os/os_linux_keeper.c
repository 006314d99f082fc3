/* os_linux_keeper.c: a process that shares this one's memory and does nothing: when this one ends,
 * is killed, or calls exec, the memory keeps its last state for a tool to read, until the tool
 * closes its end of a socket.
 *
 *   program   socket ── connect ── clone ── waits until the parent has ended and the keeper has settled ── goes on, without the socket
 *   parent                           └─ clone ── ends
 *   keeper                                └─ says so to the tool ── sleeps ── the tool hangs up: ends
 *
 * The keeper is not the program's child, so no wait reports it; it has no file but the socket, no
 * terminal, and takes no signal. Its thread pointer is the maker's, and so is errno: once settled
 * it calls nothing that may touch them, and its maker waits for that, however long it takes. */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scan.h"
#include "os/os.h"
#include "os/os_linux.h"

enum { STACK_BYTES = 32 << 10, DESCRIPTORS_OF_OLD_KERNELS = 4096, LOOK_AGAIN_MS = 20 };

typedef int (*clone_function)(int (*body)(void *), void *stack, int flags, void *argument, ...);

struct keeper {
  ATOMIC(uint32_t) is_settling; /* until it has settled, or ended: the kernel clears it then */
  int socket;
  unsigned wait_ms;
  clone_function clone;
  char *stack; /* its end */
  bool is_made;
};

/* close_range came with Linux 5.9. */
static void close_others(int kept) {
  if (OS_CALL(SYS_close_range, kept + 1, ~0U, 0) == 0) {
    if (kept > 0) OS_CALL(SYS_close_range, 0, kept - 1, 0);
    return;
  }
  for (int other = 0; other < DESCRIPTORS_OF_OLD_KERNELS; other++)
    if (other != kept) os_close(other);
}

/* Yama lets only ancestors read, and this process's may end. The tool listens: the kernel knows the
 * process at the other end. */
static void admit_peer(int descriptor) {
  struct ucred peer = {0};
  socklen_t bytes = sizeof peer;
  if (OS_CALL(SYS_getsockopt, descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
      peer.pid > 0)
    OS_CALL(SYS_prctl, PR_SET_PTRACER, peer.pid, 0, 0, 0);
}

/* Runs in the new process, on the stack above the record. */
static int keep(void *argument) {
  struct keeper *keeper = argument;
  struct pollfd tool = {.fd = keeper->socket, .events = POLLIN};
  struct timespec most = {keeper->wait_ms / 1000, keeper->wait_ms % 1000 * 1000000L};
  OS_CALL(SYS_setsid);
  OS_CALL(SYS_chdir, "/");
  OS_CALL(SYS_prctl, PR_SET_NAME, OS_KEEPER_NAME, 0, 0, 0);
  close_others(tool.fd);
  admit_peer(tool.fd);
  OS_CALL(SYS_sendto, tool.fd, "k", 1, MSG_NOSIGNAL, NULL,
          0); /* the kernel passes the sender's number along */
  OS_CALL(SYS_ppoll, &tool, 1, &most, NULL, sizeof(uint64_t));
  tool.events = 0;                        /* from now on its end alone */
  store_release(&keeper->is_settling, 0); /* its last errno; pairs with await */
  /* Neither can fail: all signals are blocked. */
  OS_CALL(SYS_futex, &keeper->is_settling, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  OS_CALL(SYS_ppoll, &tool, 1, NULL, NULL, sizeof(uint64_t));
  return 0;
}

static int connected(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t bytes = (size_t)(scan_next(path) - path);
  if (bytes > sizeof address.sun_path) return -1;
  memcpy(address.sun_path, path, bytes);
  int descriptor = (int)OS_CALL(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor >= 0 && OS_CALL(SYS_connect, descriptor, &address, sizeof address) != 0) {
    os_close(descriptor);
    return -1;
  }
  return descriptor;
}

/* The C library's, looked up here and not at the start of each process; NULL in a static program.
 * Looked up once: in a forked child the dynamic linker's lock may be held by a thread that does not
 * exist there. */
static clone_function find_clone(void) {
  static ATOMIC(uintptr_t) found; /* relaxed: every thread finds the same */
  if (!load_relaxed(&found)) store_relaxed(&found, (uintptr_t)os_next_symbol("clone"));
  return (clone_function)load_relaxed(&found);
}

/* Runs in the process between the two, whose end makes init the keeper's parent. */
static int be_parent(void *argument) {
  struct keeper *keeper = argument;
  int flags = CLONE_VM | CLONE_CHILD_CLEARTID;
  void *cleared = &keeper->is_settling;
  keeper->is_made = keeper->clone(keep, keeper->stack, flags, keeper, NULL, NULL, cleared) > 0;
  return 0;
}

/* False when the keeper cannot be started. */
static bool start(struct keeper *keeper, char *stack_of_parent) {
  keeper->clone = find_clone();
  if (!keeper->clone) return false;
  uint64_t before = os_block_signals(); /* they inherit: no handler runs on them */
  int parent = keeper->clone(be_parent, stack_of_parent, CLONE_VM | CLONE_VFORK, keeper);
  if (parent > 0) OS_CALL(SYS_wait4, parent, NULL, __WCLONE, NULL);
  os_unblock_signals(before);
  return keeper->is_made;
}

/* If the keeper dies, the kernel does not wake waiters on private words, so the wait looks
 * again. */
static void await(struct keeper *keeper) {
  /* acquire: pairs with keep. */
  while (load_acquire(&keeper->is_settling)) os_wait(&keeper->is_settling, 1, LOOK_AGAIN_MS);
}

/* The record and two stacks lie in memory that stays. */
static bool start_in(char *memory, int descriptor, unsigned wait_ms) {
  struct keeper *keeper = (struct keeper *)(void *)memory;
  keeper->socket = descriptor;
  keeper->wait_ms = wait_ms;
  keeper->stack = memory + STACK_BYTES;
  store_relaxed(&keeper->is_settling, 1);
  bool is_started = start(keeper, memory + 2 * STACK_BYTES);
  if (is_started) await(keeper);
  return is_started;
}

bool os_start_keeper(const char *socket_path, unsigned wait_ms) {
  KEEP_ERRNO();
  if (os_is_confined()) return false;
  int descriptor = connected(socket_path);
  if (descriptor < 0) return false;
  char *memory =
      mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool is_started = memory != MAP_FAILED && start_in(memory, descriptor, wait_ms);
  if (memory != MAP_FAILED && !is_started) munmap(memory, 2 * STACK_BYTES);
  os_close(descriptor);
  return is_started;
}
