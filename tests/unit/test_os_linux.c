/* src/os/os_linux: the contract of os.h, on the real system. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/bits.h"
#include "child.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "os/os_linux.h"

#define PAGES ((size_t)16 * os_page_bytes())
#define MOVED (64 * PAGES) /* less than 256 KiB is copied */

/* A place where nothing is: reserved and given back. */
static unsigned char *free_place(size_t bytes) {
  void *place = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_ptr_not_equal(place, MAP_FAILED);
  os_unmap(place, bytes);
  return place;
}

/* A filter may have been there before the program was; a confined process makes no call to find
 * out. */
CHILD(check_under_a_filter) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mincore, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  size_t page_bytes = os_page_bytes(), bytes = 1000 * page_bytes;
  unsigned char *pages =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  os_advise_huge(pages, bytes, false);
  REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
  REQUIRE(os_resident_bytes(pages, bytes) == 0);
  pages[0] = pages[page_bytes] = pages[bytes - 1] = 1;
  REQUIRE(os_resident_bytes(pages, bytes) == 3 * page_bytes);
  os_note_prctl(PR_SET_NAME);
  REQUIRE(!os_is_confined());
  os_note_prctl(PR_SET_SECCOMP);
  REQUIRE(os_is_confined() && os_resident_bytes(pages, bytes) == bytes);
  char text[8];
  os_read_file("/proc/self/stat", text, sizeof text);
  REQUIRE(!text[0] && os_create_file("/dev/null") == -1 && !os_thread_start(NULL, NULL));
}

static void *compare_thread_ids(void *unused) {
  REQUIRE(os_thread_id_of_libc() == (uint32_t)gettid());
  return unused;
}

CHILD(know_the_thread) {
  if (!os_thread_id_of_libc()) return; /* this C library does not say */
  compare_thread_ids(NULL);
  on_a_thread(compare_thread_ids, NULL);
  pid_t child = fork();
  if (child == 0) {
    compare_thread_ids(NULL);
    _exit(0);
  }
  require_child_succeeded(child);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HAS_CALLS_OF_ITS_OWN = true }; /* the sanitizer, which a filter might meet */
#else
enum { HAS_CALLS_OF_ITS_OWN = false };
#endif

/* The first test: knowledge of filters is kept. */
TEST(confinement) {
  if (!HAS_CALLS_OF_ITS_OWN) assert_child_succeeds(check_under_a_filter, NULL);
  assert_child_succeeds(know_the_thread, NULL);
}

static void write_to(const void *address) { *(volatile char *)(uintptr_t)address = 1; }

TEST(reserve_and_commit) {
  unsigned char *pages = free_place(PAGES);
  assert_int_equal(os_reserve_at(pages, PAGES), OS_MAPPED);
  errno = 77;
  assert_int_equal(os_reserve_at(pages + PAGES / 2, PAGES), OS_OCCUPIED);
  assert_int_equal(errno, 77);
  assert_true(os_commit(pages, PAGES / 2));
  assert_true(os_commit(pages, PAGES / 2)); /* again is harmless */
  for (size_t at = 0; at < PAGES / 2; at++) assert_int_equal(pages[at], 0);
  for (size_t at = PAGES / 2; at < PAGES; at++)
    assert_int_equal(pages[at], 0); /* the rest can be read */
  struct child child = child_run(write_to, pages + PAGES / 2);
  assert_true(WIFSIGNALED(child.status));
  os_unmap(pages, PAGES);
}

TEST(map_at) {
  unsigned char *place = free_place(PAGES);
  errno = 77;
  assert_false(os_is_occupied(place, PAGES));
  assert_int_equal(os_map_at(place, PAGES), OS_MAPPED);
  assert_true(os_is_occupied(place - 4 * PAGES, 8 * PAGES)); /* somewhere in between */
  memset(place, 1, PAGES);
  assert_int_equal(os_map_at(place, os_page_bytes()), OS_OCCUPIED); /* never over a mapping */
  assert_int_equal(os_map_at(place + PAGES - os_page_bytes(), PAGES), OS_OCCUPIED);
  assert_int_equal(place[0], 1);
  assert_int_equal(errno, 77); /* free must not change it */
  os_unmap(place, PAGES);
}

TEST(purge) {
  unsigned char *place = free_place(PAGES);
  assert_int_equal(os_map_at(place, PAGES), OS_MAPPED);
  memset(place, 1, PAGES);
  assert_true(os_purge(place, PAGES / 2));
  assert_int_equal(place[0], 0);
  assert_int_equal(place[PAGES / 2], 1);
  assert_int_equal(os_remap(place, PAGES), OS_DONE);
  assert_int_equal(place[PAGES / 2], 0);
  os_unmap(place, PAGES);
  errno = 77;
  assert_false(os_purge(place, PAGES)); /* nothing is there */
  assert_int_equal(errno, 77);
}

/* Whatever the kernel is told about a part makes that a mapping of its own. */
TEST(one_mapping) {
  unsigned char *place = free_place(PAGES);
  size_t page_bytes = os_page_bytes();
  assert_int_equal(os_map_at(place, PAGES), OS_MAPPED);
  errno = 77;
  assert_true(os_is_one_mapping(place, PAGES));
  assert_int_equal(madvise(place + page_bytes, page_bytes, MADV_DONTFORK), 0);
  bool is_known = !os_is_one_mapping(place, PAGES); /* an emulator may not say */
  assert_true(os_is_one_mapping(place, page_bytes));
  assert_true(os_is_one_mapping(place + page_bytes, page_bytes));
  assert_int_equal(os_remap(place, PAGES), OS_DONE);
  assert_true(os_is_one_mapping(place, PAGES));
  assert_int_equal(errno, 77);
  os_unmap(place, PAGES);
  if (!is_known) skip();
}

TEST(move_pages) {
  unsigned char *source = free_place(2 * MOVED), *target = source + MOVED;
  assert_int_equal(os_map_at(source, 2 * MOVED), OS_MAPPED);
  memset(source, 5, MOVED);
  if (os_move_pages(target, source, MOVED) != OS_DONE) {
    assert_int_equal(source[0], 5); /* before Linux 5.7: nothing changed */
    skip();
  }
  for (size_t at = 0; at < MOVED; at++) {
    assert_int_equal(target[at], 5);
    assert_int_equal(source[at], 0); /* still mapped, and empty */
  }
  os_unmap(source, 2 * MOVED);
}

/* After a first move the source is two mappings, which older kernels do not move in one call. */
TEST(move_again) {
  unsigned char *first = free_place(6 * MOVED), *second = first + 2 * MOVED,
                *third = second + 2 * MOVED;
  assert_int_equal(os_map_at(first, 6 * MOVED), OS_MAPPED);
  memset(first, 5, MOVED);
  if (os_move_pages(second, first, MOVED) != OS_DONE) skip(); /* before Linux 5.7 */
  memset(second + MOVED, 6, MOVED);
  assert_int_equal(os_move_pages(third, second, 2 * MOVED), OS_DONE);
  for (size_t at = 0; at < 2 * MOVED; at++) assert_int_equal(third[at], at < MOVED ? 5 : 6);
  memset(second, 7, 2 * MOVED); /* still mapped */
  os_unmap(first, 6 * MOVED);
}

TEST(holes) {
  size_t page_bytes = os_page_bytes();
  char *pages = (char *)free_place(PAGES);
  assert_int_equal(os_map_at(pages, PAGES), OS_MAPPED);
  memset(pages, 5, PAGES);
  os_unmap(pages + page_bytes, page_bytes);
  os_unmap(pages + 5 * page_bytes, 3 * page_bytes);
  assert_true(os_close_holes(pages, PAGES));
  for (size_t page = 0; page < PAGES / page_bytes; page++)
    assert_int_equal(pages[page * page_bytes], page == 1 || (page >= 5 && page < 8) ? 0 : 5);
  os_unmap(pages, PAGES);
}

/* ---- pages that are closed ------------------------------------------------------------------- */

static void require_closed(const unsigned char *page, bool is_closed) {
  REQUIRE(os_read_safely(&(char){0}, page, 1) != is_closed);
}

CHILD_TEST(open_and_close) {
  unsigned char *pages = os_reserve_closed(PAGES), *page = pages + os_page_bytes();
  REQUIRE(pages);
  errno = 77;
  for (unsigned time = 0; time < 3; time++) {
    require_closed(page, true);
    REQUIRE(os_open_pages(page, os_page_bytes()));
    require_closed(page - 1, true);
    require_closed(page, false);
    require_closed(page + os_page_bytes(), true);
    REQUIRE(page[0] == 0);
    page[0] = 1;
    REQUIRE(os_close_pages(page, os_page_bytes()));
  }
  require_closed(page, true);
  REQUIRE(errno == 77);
  os_unmap(pages, PAGES);
}

/* Locked pages have no guard regions; they are closed all the same. */
CHILD_TEST(open_and_close_locked) {
  unsigned char *pages = os_reserve_closed(PAGES), *page = pages + os_page_bytes();
  REQUIRE(pages && os_open_pages(page, os_page_bytes()));
  page[0] = 1;
  if (mlock(page, os_page_bytes()) != 0) return; /* not allowed here */
  for (unsigned time = 0; time < 3; time++) {
    REQUIRE(os_close_pages(page, os_page_bytes()));
    require_closed(page, true);
    REQUIRE(os_open_pages(page, os_page_bytes()));
    require_closed(page, false);
    REQUIRE(page[0] == 0 && page[1] == 0);
    page[0] = page[1] = 1;
  }
}

CHILD_TEST(keep_closed_in_child) {
  unsigned char *pages = os_reserve_closed(PAGES);
  REQUIRE(pages && os_open_pages(pages, os_page_bytes()));
  pages[0] = 7;
  pid_t child = fork();
  if (child == 0) {
    require_closed(pages + os_page_bytes(), true);
    REQUIRE(pages[0] == 7);
    _exit(0);
  }
  require_child_succeeded(child);
}

/* ---- code ------------------------------------------------------------------------------------ */

TEST(places) {
  struct os_place place;
  uintptr_t here = (uintptr_t)__builtin_return_address(0);
  os_find_place(here, &place);
  assert_true(place.module && here - place.module_base < 1u << 30);
  os_find_place(8, &place);
  assert_true(!place.module && !place.symbol);
}

CHILD(limit_address_space) {
  struct rlimit limit = {1 << 30, 1 << 30};
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  REQUIRE(os_data_limit() == UINT64_MAX || os_data_limit() > 0);
  REQUIRE(setrlimit(RLIMIT_DATA, &(struct rlimit){1 << 29, 1 << 29}) == 0);
  REQUIRE(os_data_limit() == 1 << 29);
  errno = 77;
  void *nowhere_near = (void *)((uintptr_t)1 << 45);
  REQUIRE(os_reserve_at(nowhere_near, (size_t)2 << 30) == OS_NO_MEMORY && errno == 77);
}

TEST(address_space_limit) {
#if defined(__SANITIZE_ADDRESS__)
  skip(); /* the sanitizer's shadow alone exceeds any limit */
#endif
  assert_child_succeeds(limit_address_space, NULL);
}

TEST(machine) {
  int here;
  assert_true(is_power_of_two(os_page_bytes()));
  assert_true(is_power_of_two(os_user_address_end()));
  assert_true(os_processor_count() >= 1);
  assert_true(os_random() != os_random());
  assert_false(os_is_in_break((uintptr_t)&here));
  assert_int_equal(os_process_id(), getpid());
}

TEST(resident_bytes) {
  size_t page_bytes = os_page_bytes(), bytes = 1000 * page_bytes;
  unsigned char *pages =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(pages, MAP_FAILED);
  os_advise_huge(pages, bytes, false);
  assert_int_equal(os_resident_bytes(pages, bytes), 0);
  pages[0] = pages[page_bytes] = pages[bytes - 1] = 1;
  assert_int_equal(os_resident_bytes(pages, bytes), 3 * page_bytes);
  assert_int_equal(munmap(pages, bytes), 0);
  assert_int_equal(os_resident_bytes(pages, 2000 * page_bytes), 2000 * page_bytes); /* not asked */
}

/* Another process's filter is not ours: a child of vfork shares the memory. */
TEST(vfork_confines_itself) {
  pid_t child = vfork();
  if (child == 0) {
    os_note_prctl(PR_SET_NO_NEW_PRIVS);
    _exit(0);
  }
  int status;
  assert_true(waitpid(child, &status, 0) == child && status == 0);
  assert_false(os_is_confined());
}

TEST(read_safely) {
  size_t page_bytes = os_page_bytes();
  unsigned char *pages = free_place(3 * page_bytes), copy[64];
  assert_int_equal(os_map_at(pages, page_bytes), OS_MAPPED);
  memset(pages, 5, page_bytes);
  errno = 77;
  assert_true(os_read_safely(copy, pages + page_bytes - 63, 63) && copy[62] == 5);
  assert_false(os_read_safely(copy, pages + page_bytes - 63, 64));
  assert_false(os_read_safely(copy, pages + 2 * page_bytes, 1));
  assert_true(os_read_safely(copy, memcpy(pages, &(uint32_t){0x9e3779b9}, 4), 4)); /* compared */
  assert_false(os_read_safely(copy, (void *)8, 8));
  assert_false(os_read_safely(copy, (void *)(UINTPTR_MAX - 7), 64));
  assert_int_equal(errno, 77);
  os_unmap(pages, page_bytes);
}

TEST(time) {
  uint64_t before_ns = os_now_ns(), before_ms = os_now_coarse_ms();
  os_sleep_ms(20);
  assert_true(os_now_ns() - before_ns >= 20 * UINT64_C(1000000));
  assert_true(os_now_coarse_ms() - before_ms >= 10); /* a tick or two behind */
}

/* ---- waiting --------------------------------------------------------------------------------- */

static ATOMIC(uint32_t) word;

static void *wake(void *unused) {
  os_sleep_ms(5);
  store_release(&word, 1);
  os_wake_one(&word);
  return unused;
}

TEST(wait) {
  os_wait(&word, 1, 0);  /* another value: returns at once */
  os_wait(&word, 0, 10); /* no wake-up: returns in the end */
  assert_true(os_thread_start(wake, NULL));
  while (load_acquire(&word) == 0) os_wait(&word, 0, 0);
}

/* Those that grant real time to desktop programs set a flag beside the policy. */
static void *look_in_real_time(void *argument) {
  struct sched_param priority = {.sched_priority = 1};
  int *refusal = argument;
  *refusal = sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &priority);
  return *refusal || os_is_real_time() ? NULL : argument;
}

TEST(real_time) {
  pthread_t thread;
  void *failed;
  int refusal;
  assert_false(os_is_real_time());
  assert_int_equal(pthread_create(&thread, NULL, look_in_real_time, &refusal), 0);
  assert_int_equal(pthread_join(thread, &failed), 0);
  if (refusal) skip();
  assert_null(failed);
}

/* ---- no key left ----------------------------------------------------------------------------- */

static pthread_key_t first_key;

static void *allocate(void *unused) {
  (void)unused;
  pthread_setspecific(first_key, &word);
  hak_free(hak_malloc(100));
  return pthread_getspecific(first_key);
}

static bool is_between(uintptr_t address, uintptr_t begin, uintptr_t end) {
  return address >= begin && address < end;
}

TEST(modules) {
  struct os_module own, other;
  uintptr_t here = (uintptr_t)&test_modules;
  assert_true(os_find_module(here, &own));
  assert_true(is_between(here, own.begin, own.end));
  assert_true(is_between(own.unwind_header, own.begin, own.end));
  assert_int_equal(*(const unsigned char *)own.unwind_header, 1); /* its version */
  assert_true(os_find_module((uintptr_t)&pthread_create, &other));
  assert_true(other.begin >= own.end || other.end <= own.begin);
  assert_false(os_find_module(0, &other));
  assert_false(os_find_module((uintptr_t)&own, &other)); /* the stack's */
  assert_true(os_first_stack_end() > (uintptr_t)&own);
  assert_true(os_first_stack_end() > (uintptr_t)os_environment()[0]);
}

TEST(links_and_files_are_read) {
  char target[256], name[] = "/tmp/hakmem-XXXXXX", line[256];
  os_read_link("/proc/self/exe", target, sizeof target);
  assert_int_equal(target[0], '/');
  os_read_link("/proc/self", target, 3);
  assert_int_equal(strlen(target), 2); /* as much as fits */
  os_read_link("/proc/self/maps", target, sizeof target);
  assert_int_equal(target[0], 0); /* not a link */
  int file = mkstemp(name);
  os_copy_file("/proc/self/comm", file);
  os_copy_file("/nowhere", file);
  os_copy_file("/proc/self/comm", file);
  assert_int_equal(pread(file, line, sizeof line, 0), 2 * strlen("test_os_linux\n"));
  os_close(file);
  unlink(name);
}

/* A program that has used up all keys before hakmem asks for its own: no foreign key is touched. */
CHILD_TEST(no_key_left) {
  pthread_key_t key;
  REQUIRE(pthread_key_create(&first_key, NULL) == 0);
  while (pthread_key_create(&key, NULL) == 0) {
  }
  for (unsigned life = 0; life < 3; life++) {
    pthread_t thread;
    void *value;
    REQUIRE(pthread_create(&thread, NULL, allocate, NULL) == 0);
    REQUIRE(pthread_join(thread, &value) == 0 && value == &word);
  }
}
