/* os.h: the contract between hakmem and the operating system.
 *
 * Every system call and every read of the process's environment goes through one of these
 * functions; os_linux.c and the files beside it, each with a subject, implement them, os_fake.c does
 * so for tests (it counts, fails at will and holds time still).  Preconditions: addresses and sizes
 * are multiples of the page size, sizes are not 0.  No function here allocates, and none but os_thread_start calls back into malloc. */
#ifndef HAK_OS_OS_H
#define HAK_OS_OS_H

#include "base/atomic.h"
#include "base/compiler.h"

/* ---- memory ----------------------------------------------------------------------------------
 *
 * A call that the kernel refuses may have done a part of its work, and kernels differ in which.  What is left is
 * restored here, as far as can be; each function says what its callers must expect.  None leaves less mapped than it
 * says, and none replaces a mapping of somebody else's. */

enum os_map_result { OS_MAPPED, OS_OCCUPIED, OS_NO_MEMORY };
/* LOST: some of the pages are not mapped any more and cannot be.  The rest is to be given back by os_unmap; the addresses
 * are used again by os_map_at, which says when something is there. */
enum os_change { OS_REFUSED, OS_DONE, OS_LOST };

size_t os_page_bytes(void);
/* Address space at exactly `address`, never over an existing mapping, that reads as zero, cannot be written, and
 * costs neither memory nor commit charge. */
enum os_map_result os_reserve_at(void *address, size_t bytes);
/* Makes reserved pages writable; false when refused: then some of them may be so. */
bool os_commit(void *address, size_t bytes);
/* True when something is mapped between the addresses; false too when the kernel does not say. */
bool os_is_occupied(const void *address, size_t bytes);
/* Fresh zeroed memory at exactly `address`, never over an existing mapping. */
enum os_map_result os_map_at(void *address, size_t bytes);
/* Whether the kernel would map so many bytes now, wherever.  Nothing stays mapped. */
bool os_could_map(size_t bytes);
/* Gives address space and memory back.  False when the kernel refused: to cut a mapping in two needs one more
 * than there may be (vm.max_map_count); then all of it is mapped, each page with its content or empty. */
bool os_unmap(void *address, size_t bytes);
/* Drops the pages' content and memory, keeping the mapping: they read as zero afterwards.  False
 * when the kernel refused (locked memory, say): then each page has its content or is empty. */
bool os_purge(void *address, size_t bytes);
/* Populates pages ahead of use, as far as the kernel can. */
void os_populate(void *address, size_t bytes);
/* How many of its bytes are resident, in whole pages; all of them when the kernel does not tell or cannot be asked, or of
 * more than 4 MiB. */
size_t os_resident_bytes(void *address, size_t bytes);
/* Asks for (or refuses) transparent huge pages. */
void os_advise_huge(void *address, size_t bytes, bool want);
/* Moves the pages from `source` to `target`, both mapped and of the same size, mostly without copying.  DONE: source is
 * mapped, of arbitrary content.  REFUSED: nothing changed.  LOST: target is, and source has its content. */
enum os_change os_move_pages(void *target, void *source, size_t bytes);
/* Replaces a mapping by a fresh one, as if it had never been moved (heals VMA fragments).  REFUSED: each page has its
 * content or is empty. */
enum os_change os_remap(void *address, size_t bytes);

/* Mapped pages that nobody may touch: by guard regions where the kernel has them (Linux 6.13), which divide no mapping,
 * else by protection.  Whoever touches them gets SIGSEGV; their content is dropped.  False when refused: then they are
 * open, each with its content or empty.  Where the kernel refuses to open them again, some are open although it is true. */
bool os_close_pages(void *address, size_t bytes);
/* Makes closed pages readable and writable; they read as zero.  False when refused: then some of them may be open. */
bool os_open_pages(void *address, size_t bytes);
/* The same by a mapping in their place, which has no page tables either.  It is not opened again, only unmapped. */
bool os_close_by_mapping(void *address, size_t bytes);
/* Address space whose pages are closed, of a mapping of its own; NULL when refused. */
void *os_reserve_closed(size_t bytes);

/* ---- process and machine ---------------------------------------------------------------------- */

/* Of the address space; of what can be written there and is the process' own. */
enum os_limit { OS_LIMIT_ADDRESS_SPACE, OS_LIMIT_DATA };
/* In bytes; UINT64_MAX when there is none or it is not known. */
uint64_t os_limit(enum os_limit which);
/* True when the kernel refuses to overcommit: then unused mappings are given back, not kept.  Read once,
 * at the first call. */
bool os_overcommit_is_strict(void);
/* True when the kernel gives huge pages without being asked, and when it does not tell. */
bool os_huge_pages_always(void);
/* Highest address + 1 that user mappings may have, a power of two. */
uintptr_t os_user_address_end(void);
unsigned os_processor_count(void);
uint64_t os_random(void);
uint32_t os_process_id(void);
/* The kernel's number of this thread. */
uint32_t os_thread_id(void);
/* The environment as "NAME=value" strings, or NULL; NULL too for a setuid program. */
char **os_environment(void);
/* False only when the process is known to have one thread: set by libc before it starts a second. */
bool os_is_multi_threaded(void);

/* The first bytes of a small file as text; "" when it cannot be read. */
void os_read_file(const char *path, char *buffer, size_t buffer_bytes);

/* ---- confinement --------------------------------------------------------------------------------- */

/* The program is about to install a filter of system calls, which may end the process.  From now on only mmap, munmap,
 * mremap, mprotect, madvise, futex, brk and getrandom are called, and to report write: files read as empty, threads
 * cannot be had, what is resident is not known, processor time is that of the clock. */
void os_confine(void);
bool os_is_confined(void);
/* The program calls prctl with this option: with those that announce a filter it is confined. */
void os_note_prctl(int option);

/* ---- the cgroup (cgroup.c) --------------------------------------------------------------------- */

#define OS_CGROUP_NONE UINT64_MAX
enum { OS_CGROUP_PROCESSOR = 1000, OS_CGROUP_PATH_BYTES = 512 };

/* The tightest limits of the process's cgroups and of those above them, as far as they can be seen. */
struct os_cgroup {
  uint64_t memory_max_bytes; /* memory.max; v1: memory.limit_in_bytes; OS_CGROUP_NONE without one */
  uint64_t memory_high_bytes; /* memory.high, of v2 only */
  uint64_t processor_quota;   /* in thousandths of a processor */

  char memory_path[OS_CGROUP_PATH_BYTES]; /* where the tightest memory limit was found */
  bool is_v1;
};
/* The machine's memory; OS_CGROUP_NONE when it is not told.  One thread at a time, as the next. */
uint64_t os_memory_bytes(void);
/* Reads them.  One thread at a time; what it returns is overwritten by the next call. */
const struct os_cgroup *os_cgroup_read(void);
/* What the cgroup with that limit uses.  Pages of files, which the kernel can drop, are left out when it is more
 * than `calm_bytes`: below that nobody needs to know exactly. */
uint64_t os_cgroup_used_bytes(const struct os_cgroup *cgroup, uint64_t calm_bytes);

/* ---- time ------------------------------------------------------------------------------------- */

uint64_t os_now_ns(void);
/* A few milliseconds coarse and several times cheaper. */
uint64_t os_now_coarse_ms(void);
/* Processor time of the whole process; a system call. */
uint64_t os_processor_ms(void);
void os_yield(void);
/* Before it returns each other thread of the process has passed a full memory barrier.  False when the kernel cannot; it is
 * asked to get ready for it by the first call. */
bool os_fence_other_threads(void);
void os_sleep_ms(uint64_t milliseconds);

/* ---- waiting ---------------------------------------------------------------------------------- */

/* Sleeps while *word == expected, at most timeout_ms (0 = for ever); may wake without cause. */
void os_wait(ATOMIC(uint32_t) *word, uint32_t expected, uint64_t timeout_ms);
void os_wake_one(ATOMIC(uint32_t) *word);
/* Waits for a word that holds the number of the thread that has it (os/lock.h), which gets this thread's priority
 * meanwhile; then it holds this thread's.  False when the kernel cannot, and after most_ms: the word is to be checked. */
bool os_take_word(ATOMIC(uint32_t) *word, uint64_t most_ms);
/* Hands it to the waiter with the highest priority; false when the kernel did not. */
bool os_give_word(ATOMIC(uint32_t) *word);
/* A detached thread with all signals blocked; false when it cannot be had. */
bool os_thread_start(void *(*body)(void *), void *argument);
/* By every thread of ours, first of all: its name (15 bytes at most), no real-time priority, and the processors that the process had
 * when os_note_processors was called, instead of its maker's.  Each as far as the kernel lets it. */
void os_thread_settle(const char *name);
void os_note_processors(void);
/* In a forked child: none of ours came along. */
void os_forget_threads(void);
/* Whether the kernel still has that thread of this process; false too when it cannot be asked. */
bool os_thread_exists(uint32_t thread_id);
/* A process beside this one that shares its memory, and so keeps it as it was when this one ends, is killed or calls exec,
 * until the tool that listens at the socket hangs up.  False when it cannot be had. */
bool os_start_keeper(const char *socket_path);
#define OS_KEEPER_NAME "hakmem-keeper" /* as /proc/PID/comm tells it */

/* Calls `function(argument)` on the calling thread when it ends, after most other destructors, up to
 * the number of rounds that the C library makes.  os_thread_exit_init once before; when no key
 * is left threads' heaps are not taken over. */
void os_thread_exit_init(void (*function)(void *));
void os_thread_exit_arm(void *argument);
/* Between the two the C library's cancellation points are none, for this thread: for functions of the C library that cannot
 * be done without.  No function here is one. */
int os_cancel_off(void);
void os_cancel_restore(int before);
/* Rounds of destructors that are certain to run; the thread sanitizer ends its own work in the last. */
#ifdef __SANITIZE_THREAD__
enum { OS_THREAD_EXIT_ROUNDS = 3 };
#else
enum { OS_THREAD_EXIT_ROUNDS = 4 };
#endif
void os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
/* Memory that a fork has copied is found to be a copy, though no handler has run (_Fork, clone), where the kernel can tell
 * (Linux 4.14); a child that shares it (vfork) has none.  os_settle_copy calls `settle` then, once; where the handlers have run,
 * os_note_copy says so. */
void os_mark_copies(void (*settle)(void));
void os_note_copy(void);
struct os_mark {
  ATOMIC(uint32_t) is_original;
};
extern ATOMIC(struct os_mark *) os_mark; /* NULL: copies are not marked */
INLINE bool os_is_copy(void) {
  struct os_mark *mark = load_acquire(&os_mark); /* what it says; pairs with os_mark_copies */
  return mark && UNLIKELY(!load_relaxed(&mark->is_original));
}
void os_call_settle(void);
INLINE void os_settle_copy(void) {
  if (UNLIKELY(os_is_copy())) os_call_settle();
}

/* ---- output ----------------------------------------------------------------------------------- */

/* Writes all of it, as far as the descriptor takes it; errno is preserved. */
void os_write(int descriptor, const char *bytes, size_t byte_count);
/* A second descriptor for the same file, closed on exec; the same one when there is no other. */
int os_duplicate(int descriptor);
/* A new file for writing (truncated), or -1. */
int os_create_file(const char *path);
void os_close(int descriptor);
/* Whether the word at the address can be read now, and so its page; a system call that any malloc needs. */
bool os_can_read(uintptr_t address);
/* Copies memory of this process that may be unmapped, unless another thread unmaps it meanwhile; false then. */
bool os_read_safely(void *target, const void *source, size_t bytes);
NORETURN void os_abort(void);

/* ---- crashes ------------------------------------------------------------------------------------ */

enum os_access { OS_ACCESS_UNKNOWN, OS_ACCESS_READ, OS_ACCESS_WRITE };

struct os_crash {
  const char *signal_name;
  uintptr_t instruction; /* where the thread was; 0 when the kernel does not say */
  uintptr_t address;     /* what it touched */
  enum os_access access;
  bool is_in_library; /* the instruction is the shared library's; false when linked statically */
  bool is_handled;    /* the program has a handler of its own, which is called next */
};

/* Calls `seen` on the thread for which SIGSEGV or SIGBUS is about to end the process, as long as the
 * program has no handler of its own; then the signal takes its default course. */
void os_watch_crashes(void (*seen)(const struct os_crash *crash));
/* From now on SIGSEGV is seen before the program's own handler, which is called next.  A program that
 * sets one later comes before us again, until the next call of this.  os_watch_crashes before. */
void os_watch_first(void);

/* ---- call stacks ---------------------------------------------------------------------------------- */

struct os_place {
  const char *module; /* path of the file that the code is from; NULL when unknown */
  uintptr_t module_base;
  const char *symbol; /* NULL when unknown */
  uintptr_t symbol_base;
};
void os_find_place(uintptr_t instruction, struct os_place *place);

/* Where a module lies in memory, or the segment of one that has gaps; its sorted table (.eh_frame_hdr) of how its frames are
 * unwound, 0 without one; and what that table and all that it refers to lie in. */
struct os_module {
  uintptr_t begin, end, unwind_header;
  uintptr_t tables_begin, tables_end;
};
/* The module that has the instruction, at any moment, in a signal handler too; false without one.  Where the C library does
 * not tell (musl, glibc before 2.35) only those are known that were noted, the program and the shared library. */
bool os_find_module(uintptr_t instruction, struct os_module *module);
/* A segment of the program that was loaded, the first, the second, …; false after the last. */
struct os_segment {
  uintptr_t begin, end;
  bool is_code, is_writable;
};
bool os_program_segment(unsigned number, struct os_segment *segment);
/* There, notes all modules that are loaded now, if they stay as long as the process does: no other may be unloaded.  At load
 * alone: the dynamic linker's locks are taken. */
void os_note_modules(bool is_first_load);
/* True for hakmem's own code, of the shared library and of the archive. */
bool os_is_in_library(uintptr_t instruction);
/* Whether the function that returns there was a process's or a thread's first one, where the C library has no tables that say so
 * (musl). */
bool os_is_after_first_call(uintptr_t instruction);
/* Where the stack ends that the process began on; 0 when it is not told. */
uintptr_t os_first_stack_end(void);

/* ---- the C library's own malloc ---------------------------------------------------------------- */

/* The next definition of a symbol in the process's search order after ours; NULL without one, or
 * without a dynamic linker. */
void *os_next_symbol(const char *name);
/* Whether a lookup of this name of ours finds ours, and not another's. */
bool os_symbol_is_ours(const char *name);
/* What the next malloc in the process's search order offers; members are NULL when there is none. */
struct os_libc_malloc {
  void (*free)(void *);
  void *(*realloc)(void *, size_t);
  size_t (*usable_size)(void *);
};
const struct os_libc_malloc *os_libc_malloc(void);
/* True when the address lies in the data segment that grows by brk. */
bool os_is_in_break(uintptr_t address);

#endif
