/* os_linux_process.c: the contract of os.h on Linux, where it is about who calls: which thread, of
 * which process, and whether that process is the one whose memory this is.
 *
 *   copy    a forked child: other memory, with the same content. A fork handler says so, or a page
 *           that is empty there
 *   guest   a thread of another process in the same memory: a child of vfork, or of clone with
 *           CLONE_VM, or a thread that such a child has started
 *
 * A page holds the number of the process whose memory this is: a copy finds 0, a guest another. It
 * is made before the process has a second thread. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "os/os_linux.h"

#ifndef MADV_WIPEONFORK /* Linux 4.14 */
#define MADV_WIPEONFORK 18
#endif

/* ---- threads --------------------------------------------------------------------------------- */

#if defined(__GLIBC__)
/* A mutex holds its owner's thread number. */
uint32_t os_thread_id_of_libc(void) {
  pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  if (pthread_mutex_lock(&mutex) != 0) return 0;
  uint32_t thread_id = (uint32_t)mutex.__data.__owner;
  pthread_mutex_unlock(&mutex);
  return thread_id;
}
#else
/* So does musl's. */
uint32_t os_thread_id_of_libc(void) {
  enum { HOLDER = 1, HOLDER_MASK = 0x3fffffff };
  pthread_mutexattr_t attributes;
  pthread_mutex_t mutex;
  if (pthread_mutexattr_init(&attributes) != 0 ||
      pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) != 0 ||
      pthread_mutex_init(&mutex, &attributes) != 0 || pthread_mutex_lock(&mutex) != 0)
    return 0;
  uint32_t thread_id = (uint32_t)mutex.__u.__vi[HOLDER] & HOLDER_MASK;
  pthread_mutex_unlock(&mutex);
  return thread_id;
}
#endif

uint32_t os_thread_id(void) {
  uint32_t thread_id = os_is_confined() ? os_thread_id_of_libc() : 0;
  return thread_id ? thread_id : (uint32_t)OS_CALL(SYS_gettid);
}

uint32_t os_process_id(void) { return (uint32_t)OS_CALL(SYS_getpid); }

/* A child of vfork runs on its parent's thread-local storage, where the C library keeps the
 * parent's number. So does a child that was cloned without the C library, in memory of its own. */
static bool has_its_own_number(uint32_t thread_id) {
  KEEP_ERRNO();
#if defined(__GLIBC__)
  /* glibc tells the kernel where each thread's list of mutexes is (get_robust_list); a child of
   * vfork has none. No mutex is taken to ask: programs wrap that function, and their wrapper may
   * allocate. */
  void *list = NULL;
  size_t bytes = 0;
  if (!os_is_confined() && OS_CALL(SYS_get_robust_list, 0, &list, &bytes) == 0) return list;
#endif
  uint32_t known = os_thread_id_of_libc();
  return !known || known == thread_id;
}

uint32_t os_lasting_thread_id(void) {
  uint32_t thread_id = os_thread_id();
  return has_its_own_number(thread_id) || !os_is_guest() ? thread_id : os_thread_id_of_libc();
}

/* ---- copies and guests ----------------------------------------------------------------------- */

ATOMIC(struct os_mark *) os_mark;
static void (*settle_copy)(void); /* ordered by os_mark */

/* A separate page, which the kernel empties in a copy, if it can. */
void os_mark_copies(void (*settle)(void)) {
  KEEP_ERRNO();
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  struct os_mark *mark = mmap(NULL, os_page_bytes(), PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mark == MAP_FAILED) return;
  madvise(mark, os_page_bytes(), MADV_WIPEONFORK);
  settle_copy = settle;
  store_relaxed(&mark->process_id, os_process_id());
  store_release(&os_mark, mark); /* both; pairs with os_is_copy */
}

void os_note_copy(void) {
  struct os_mark *mark = load_relaxed(&os_mark); /* the process has one thread */
  if (mark) store_relaxed(&mark->process_id, os_process_id());
}

void os_call_settle(void) {
  os_note_copy();
  settle_copy();
}

/* Another number alone does not prove a guest: the kernel may not have emptied a copy's page, or
 * the process was restored from a file. In both the first thread knows its number. */
bool os_is_guest(void) {
  if (os_is_confined()) return false;
  struct os_mark *mark = load_acquire(&os_mark); /* its content; pairs with os_mark_copies */
  if (!mark) return !has_its_own_number(os_thread_id());
  uint32_t marked_id = load_relaxed(&mark->process_id), process_id = os_process_id();
  if (LIKELY(marked_id == process_id || !marked_id)) return false;
  uint32_t thread_id = os_thread_id();
  if (thread_id != process_id || !has_its_own_number(thread_id)) return true;
  store_relaxed(&mark->process_id, process_id);
  return false;
}
