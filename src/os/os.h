/* os.h: the contract between hakmem and the operating system.
 *
 * Every system call and every read of the process's environment goes through one of these
 * functions; os_linux.c and the files beside it, each with a subject, implement them; os_fake.c
 * does so for tests (it counts, fails at will and holds time still). Preconditions: addresses and
 * sizes are multiples of the page size, sizes are not 0. Nothing here allocates, and only
 * os_thread_start calls malloc. */
#ifndef HAK_OS_OS_H
#define HAK_OS_OS_H

#include "base/atomic.h"
#include "base/compiler.h"

/* ---- memory ----------------------------------------------------------------------------------
 *
 * A refused call may have done a part of its work; which part, depends on the kernel. These
 * functions restore the rest as far as possible; each states what its callers must expect. None
 * leaves less mapped than stated, and none replaces a foreign mapping. */

enum os_map_result { OS_MAPPED, OS_OCCUPIED, OS_NO_MEMORY };
/* LOST: some of the pages are not mapped any more and cannot be. The caller gives the rest back by
 * os_unmap and reuses the addresses by os_map_at, which reports any foreign mapping there. */
enum os_change { OS_REFUSED, OS_DONE, OS_LOST };

size_t os_page_bytes(void);
/* Reserves address space at exactly `address`, never over an existing mapping. It reads as zero,
 * cannot be written, and costs neither memory nor commit charge. */
enum os_map_result os_reserve_at(void *address, size_t bytes);
/* Makes reserved pages writable; false when refused: then some of them may be writable. */
bool os_commit(void *address, size_t bytes);
/* True when anything is mapped between the addresses; false too when the kernel does not say. */
bool os_is_occupied(const void *address, size_t bytes);
/* Fresh zeroed memory at exactly `address`, never over an existing mapping. */
enum os_map_result os_map_at(void *address, size_t bytes);
/* Whether the kernel would map this many bytes now, at any address. Nothing stays mapped. */
bool os_could_map(size_t bytes);
/* Gives address space and memory back. False when the kernel refused (to cut a mapping in two takes
 * one more than vm.max_map_count allows): then all of it is mapped, each page with its content or
 * empty. */
bool os_unmap(void *address, size_t bytes);
/* Drops the pages' content and memory, keeping the mapping: they read as zero afterwards. False
 * when the kernel refused (for example locked memory): then each page has its content or is
 * empty. */
bool os_purge(void *address, size_t bytes);
/* Populates pages ahead of use, as far as the kernel can. */
void os_populate(void *address, size_t bytes);
/* The resident part of a range, in whole pages; the whole range when the kernel does not say, or
 * above 4 MiB. */
size_t os_resident_bytes(void *address, size_t bytes);
/* Requests (or refuses) transparent huge pages. */
void os_advise_huge(void *address, size_t bytes, bool want);
/* Moves the pages from `source` to `target`, both mapped and of the same size, mostly without
 * copying. DONE: source is mapped, with arbitrary content. REFUSED: nothing changed. LOST: target
 * has lost pages (see above); source has its content. */
enum os_change os_move_pages(void *target, void *source, size_t bytes);
/* Replaces a mapping by a fresh one, as if never moved (heals VMA fragments).  REFUSED: each page
 * has its content or is empty. */
enum os_change os_remap(void *address, size_t bytes);
/* False when the mapped pages belong to several mappings: some were moved, or the kernel was told
 * something about some of them (madvise, mlock, mprotect, mbind, prctl). True too when the kernel
 * does not say. */
bool os_is_one_mapping(void *address, size_t bytes);

/* Closes mapped pages: by guard regions where the kernel has them (Linux 6.13), which do not split
 * the mapping, else by protection. Accesses raise SIGSEGV; the content is dropped. False when
 * refused: then they are open, each with its content or empty. If the kernel also refuses to open
 * them again, some are open although the result is true. */
bool os_close_pages(void *address, size_t bytes);
/* Makes closed pages readable and writable; they read as zero. False when refused: then some of
 * them may be open. */
bool os_open_pages(void *address, size_t bytes);
/* Closes pages by a new mapping in their place, which has no page tables either. It is never opened
 * again, only unmapped. */
bool os_close_by_mapping(void *address, size_t bytes);
/* Reserves address space with closed pages, in a mapping of its own; NULL when refused. */
void *os_reserve_closed(size_t bytes);

/* ---- process and machine --------------------------------------------------------------------- */

/* The limit of private writable memory, in bytes; UINT64_MAX if unlimited or unknown. */
uint64_t os_data_limit(void);
/* True when the kernel refuses to overcommit: then unused mappings are given back, not kept. Read
 * once, at the first call. */
bool os_overcommit_is_strict(void);
/* When the kernel gives transparent huge pages; ALWAYS too when it does not say. Read once, at the
 * first call. */
enum os_huge_mode { OS_HUGE_NEVER = 'n', OS_HUGE_ON_REQUEST = 'm', OS_HUGE_ALWAYS = 'a' };
enum os_huge_mode os_huge_mode(void);
/* Highest address + 1 that user mappings may have, a power of two. */
uintptr_t os_user_address_end(void);
unsigned os_processor_count(void);
uint64_t os_random(void);
uint32_t os_process_id(void);
/* The kernel's number of this thread. */
uint32_t os_thread_id(void);
/* os_thread_id; in a child of vfork, whose stores its parent's thread inherits, that thread's. */
uint32_t os_lasting_thread_id(void);
/* Whether another process than the one whose memory this is runs this thread: a child of vfork,
 * or of clone with CLONE_VM. Such a guest may end at any instruction and take no thread with it
 * but its process's: whatever outlives a call (a thread, a long-held lock, a request taken on)
 * is left to the process itself. A system call; false in a confined process, and while it cannot
 * be told. */
bool os_is_guest(void);
/* The environment as "NAME=value" strings, or NULL; NULL too for a setuid program. */
char **os_environment(void);
/* False only when the process is known to have one thread: libc sets this before it starts a
 * second. */
bool os_is_multi_threaded(void);

/* The first bytes of a small file as text; "" when it cannot be read. */
void os_read_file(const char *path, char *buffer, size_t buffer_bytes);
/* The target of a symbolic link, likewise; "" when it is none. */
void os_read_link(const char *path, char *buffer, size_t buffer_bytes);

/* ---- confinement ----------------------------------------------------------------------------- */

/* The program is about to install a filter of system calls, which may end the process. From now on
 * hakmem calls only mmap, munmap, mremap, mprotect, madvise, futex, brk and getrandom, and write
 * for reports: files read as empty, threads cannot be started, residency is unknown, processor time
 * is the clock's. */
void os_confine(void);
bool os_is_confined(void);
/* The program calls prctl with this option: an option that announces a filter confines the
 * process. */
void os_note_prctl(int option);

/* ---- the cgroup (cgroup.c) ------------------------------------------------------------------- */

#define OS_CGROUP_NONE UINT64_MAX
enum { OS_CGROUP_PROCESSOR = 1000, OS_CGROUP_PATH_BYTES = 512 };

/* The tightest limits of the process's cgroups and of those above them, as far as they are
 * visible. */
struct os_cgroup {
  uint64_t memory_bytes;    /* memory.max, .high; v1: memory.limit_in_bytes; OS_CGROUP_NONE: none */
  uint64_t processor_quota; /* in thousandths of a processor */
  char memory_path[OS_CGROUP_PATH_BYTES]; /* where the tightest memory limit was found */
  bool is_v1;
};
/* The machine's memory; OS_CGROUP_NONE when unknown. One thread at a time, as for the next. */
uint64_t os_memory_bytes(void);
/* Reads the limits. One thread at a time; the next call overwrites the result. */
const struct os_cgroup *os_cgroup_read(void);
/* The memory use of the cgroup with that limit. Above `calm_bytes` the page cache is left out,
 * which the kernel can drop; below that no caller needs an exact figure. */
uint64_t os_cgroup_used_bytes(const struct os_cgroup *cgroup, uint64_t calm_bytes);

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t os_now_ns(void);
/* Resolution of a few milliseconds, but several times cheaper. */
uint64_t os_now_coarse_ms(void);
/* Processor time of the whole process; a system call. */
uint64_t os_processor_ms(void);
/* The processor time of the calling thread; of a confined process the clock's. */
uint64_t os_thread_ns(void);
void os_yield(void);
/* The number of the processor that runs this thread, or ran it a moment ago; the same for all where
 * the kernel does not tell. */
unsigned os_processor(void);
/* Returns after every other thread of the process has passed a full memory barrier. False when the
 * kernel cannot; the first call readies it. */
bool os_fence_other_threads(void);
void os_sleep_ms(uint64_t milliseconds);

/* ---- waiting --------------------------------------------------------------------------------- */

/* Sleeps while *word == expected, at most timeout_ms (0: no limit); may wake without cause. */
void os_wait(ATOMIC(uint32_t) *word, uint32_t expected, uint64_t timeout_ms);
void os_wake_one(ATOMIC(uint32_t) *word);
bool os_is_real_time(void); /* the calling thread: it runs before all that are not */
/* Waits for a word that holds the number of its holder thread (os/lock.h), lending that thread this
 * thread's priority; afterwards the word holds this thread's number. False when the kernel cannot
 * do so, and after most_ms: the caller must check the word. */
bool os_take_word(ATOMIC(uint32_t) *word, uint64_t most_ms);
/* Hands the word to the waiter with the highest priority; false when the kernel did not. */
bool os_give_word(ATOMIC(uint32_t) *word);
/* Starts a detached thread with all signals blocked; false when that fails. */
bool os_thread_start(void *(*body)(void *), void *argument);
/* Called first by every thread of hakmem's own: sets its name (15 bytes at most), drops real-time
 * priority, and restores the processors that the process had when os_note_processors was called,
 * instead of its maker's. Each as far as the kernel permits. */
void os_thread_settle(const char *name);
void os_note_processors(void);
/* In a forked child: none of hakmem's own threads exist there. */
void os_forget_threads(void);
/* Whether that thread of this process still exists; false too when the kernel cannot be asked. */
bool os_thread_exists(uint32_t thread_id);
/* Starts a process beside this one that shares its memory, and so keeps it unchanged after this
 * process ends, is killed or calls exec, until the tool that listens at the socket hangs up. Waits
 * `wait_ms` at most until the tool has sent a byte, or hung up. False when it fails. */
bool os_start_keeper(const char *socket_path, unsigned wait_ms);
#define OS_KEEPER_NAME "hakmem-keeper" /* its name in /proc/PID/comm */

/* Calls `function(argument)` on the calling thread when it ends, after most other destructors, up
 * to the C library's number of rounds. Call os_thread_exit_init once before; without a free key,
 * threads' heaps are not taken over. */
void os_thread_exit_init(void (*function)(void *));
void os_thread_exit_arm(void *argument);
/* The value of one of the calling thread's keys; 0 of a key that is not in use. */
uintptr_t os_thread_value(unsigned key);
/* Between the two calls this thread has no cancellation points: for functions of the C library that
 * cannot be avoided. No function declared here is a cancellation point. */
int os_cancel_off(void);
void os_cancel_restore(int before);
/* Rounds of destructors that certainly run; the thread sanitizer ends its own work in the last. */
#ifdef __SANITIZE_THREAD__
enum { OS_THREAD_EXIT_ROUNDS = 3 };
#else
enum { OS_THREAD_EXIT_ROUNDS = 4 };
#endif
void os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
/* Detects that memory is a fork's copy although no fork handler has run (_Fork, clone), where the
 * kernel can tell (Linux 4.14); a child that shares the memory (vfork) does not count.
 * os_settle_copy then calls `settle`, once; os_note_copy says that fork handlers ran. */
void os_mark_copies(void (*settle)(void));
void os_note_copy(void);
struct os_mark {
  ATOMIC(uint32_t) process_id; /* of the process whose memory this is; 0: a copy's, not known yet */
};
extern ATOMIC(struct os_mark *) os_mark; /* NULL: the process has no second thread yet */
INLINE bool os_is_copy(void) {
  struct os_mark *mark = load_acquire(&os_mark); /* its content; pairs with os_mark_copies */
  return mark && UNLIKELY(!load_relaxed(&mark->process_id));
}
void os_call_settle(void);
INLINE void os_settle_copy(void) {
  if (UNLIKELY(os_is_copy())) os_call_settle();
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Writes everything, as far as the descriptor accepts it: whether it did all. errno is
 * preserved. */
bool os_write(int descriptor, const char *bytes, size_t byte_count);
/* A second descriptor for the same file, closed on exec; the given one when the system refuses. */
int os_duplicate(int descriptor);
/* A new file for writing (truncated), or -1. */
int os_create_file(const char *path);
void os_close(int descriptor);
/* Appends a file's content, as far as it can be read; false if not all could be written. */
bool os_copy_file(const char *path, int descriptor);
/* Whether the word at the address, and so its page, can be read now; uses a system call that any
 * malloc needs. */
bool os_can_read(uintptr_t address);
/* Copies memory of this process that may be unmapped; false if it is. Not safe against another
 * thread that unmaps it meanwhile. */
bool os_read_safely(void *target, const void *source, size_t bytes);
NORETURN void os_abort(void);
/* Ends the process by abort after one line on standard error: the message of a fault inside hakmem
 * itself. At any moment: at load, in a signal handler, in a forked child. */
#define OS_FATAL(message) \
  (os_write(2, "hakmem: " message "\n", sizeof "hakmem: " message), os_abort())
/* ASSERT is checked in debug builds only and may be expensive; the release build has no check that
 * costs a user time. Callers' misuse is reported (report/report.h). */
#define OS_TEXT_OF(number) #number
#define OS_PLACE(file, line) file ":" OS_TEXT_OF(line)
#if HAK_DEBUG
#define ASSERT(condition) \
  ((condition) ? (void)0  \
               : OS_FATAL("assertion failed: " #condition " at " OS_PLACE(__FILE__, __LINE__)))
#else
#define ASSERT(condition) ((void)sizeof(condition))
#endif

/* ---- crashes --------------------------------------------------------------------------------- */

enum os_access { OS_ACCESS_UNKNOWN, OS_ACCESS_READ, OS_ACCESS_WRITE };

struct os_crash {
  const char *signal_name;
  uintptr_t instruction; /* of the thread; 0 when the kernel does not say */
  uintptr_t address;     /* the address accessed */
  enum os_access access;
  bool is_in_library; /* in the shared library's code; false when linked statically */
  bool is_handled;    /* the program has its own handler, called next */
};

/* Calls `seen` on a thread that SIGSEGV or SIGBUS is about to end with the process, unless the
 * program has its own handler; then the signal takes its default course. */
void os_watch_crashes(void (*seen)(const struct os_crash *crash));
/* From now on hakmem sees SIGSEGV before the program's own handler, which is called next. A handler
 * that the program sets later comes first again, until the next call of this. Call os_watch_crashes
 * before. */
void os_watch_first(void);

/* ---- call stacks ----------------------------------------------------------------------------- */

struct os_place {
  const char *module; /* path of the code's file; NULL when unknown */
  uintptr_t module_base;
  const char *symbol; /* NULL when unknown */
  uintptr_t symbol_base;
};
void os_find_place(uintptr_t instruction, struct os_place *place);

/* A module in memory, or the segment of one that has gaps; the address of its sorted table of
 * unwinding records (.eh_frame_hdr), 0 without one; and the memory that holds that table and
 * everything it refers to. */
struct os_module {
  uintptr_t begin, end, unwind_header;
  uintptr_t tables_begin, tables_end;
};
/* Finds the module that has the instruction; works at any moment, also in a signal handler. False
 * if there is none. Where the C library cannot be asked (musl, glibc before 2.35) only the noted
 * modules, the program and the shared library are known. */
bool os_find_module(uintptr_t instruction, struct os_module *module);
/* The loaded segments of the program, numbered from 0; false after the last. */
struct os_segment {
  uintptr_t begin, end;
  bool is_code, is_writable;
};
bool os_program_segment(unsigned number, struct os_segment *segment);
/* Where the C library cannot be asked: notes all modules that are loaded now, provided that none
 * can be unloaded. At load only: it takes the dynamic linker's locks. */
void os_note_modules(bool is_first_load);
/* True for hakmem's own code, in the shared library and in the archive. */
bool os_is_in_library(uintptr_t instruction);
/* True when the function that returns to `instruction` was the first of a process or a thread; for
 * C libraries without such tables (musl). */
bool os_is_after_first_call(uintptr_t instruction);
/* The end of the stack that the process began on; 0 when unknown. */
uintptr_t os_first_stack_end(void);

/* ---- the C library's own malloc -------------------------------------------------------------- */

/* The definition of a symbol after ours in the process's search order; NULL without one, or without
 * a dynamic linker. */
void *os_next_symbol(const char *name);
/* Whether a lookup of this name finds our definition. */
bool os_symbol_is_ours(const char *name);
/* The next malloc in the process's search order; members are NULL when there is none. */
struct os_libc_malloc {
  void (*free)(void *);
  void *(*realloc)(void *, size_t);
  size_t (*usable_size)(void *);
};
const struct os_libc_malloc *os_libc_malloc(void);
/* Whether a library opened with these flags searches its own dependencies, the C library among
 * them, before the program. */
bool os_binds_deeply(int flags);
/* From now on a search of the C library finds under these names the definitions that the program
 * finds. */
typedef char os_name[20];
void os_replace_in_libc(const os_name *names, size_t count);
/* True when the address lies in the data segment that grows by brk. */
bool os_is_in_break(uintptr_t address);

#endif
