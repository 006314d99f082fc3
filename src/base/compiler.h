/* compiler.h: everything specific to the compiler, under names that say its purpose.
 * No other folder uses an attribute or a builtin directly. */
#ifndef HAK_BASE_COMPILER_H
#define HAK_BASE_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef HAK_DEBUG
#define HAK_DEBUG 0
#endif

/* Fetches the cache line ahead of a read and write; any address is safe. */
#define PREFETCH(address) __builtin_prefetch((address), 1)
#define LIKELY(condition) (__builtin_expect(!!(condition), 1))
#define UNLIKELY(condition) (__builtin_expect(!!(condition), 0))

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((cold, noinline))
#define NORETURN _Noreturn
/* Argument `which` is a printf format; its arguments start at argument `first` (0: they are in a
 * va_list). */
#define TAKES_FORMAT(which, first) __attribute__((format(printf, which, first)))

/* Marks a function that reads arbitrary words of a stack, the sanitizer's red zones included. */
#ifdef __SANITIZE_ADDRESS__
#define READS_ANY_STACK static __attribute__((no_sanitize("address"), noinline))
#else
#define READS_ANY_STACK INLINE
#endif
/* A symbol of the public API; all others are hidden by the build. */
#define EXPORT __attribute__((visibility("default")))
/* Defines such a function that no header declares. */
#define EXPORT_UNDECLARED(result, name, ...) \
  result name(__VA_ARGS__);                  \
  EXPORT result name(__VA_ARGS__)
/* A symbol of this library only, even if another module defines the same name. */
#define HIDDEN __attribute__((visibility("hidden")))
/* A variable that fast paths read and another file of the library defines: its address is fixed
 * when the library is linked. Without this aarch64's compilers load the address from a table each
 * time. On x86-64 the linker turns such a load into a calculation; NEAR there saved an instruction
 * of free and cost random_mixed 4 % (medians of 7), as three addresses in the code are longer than
 * one. */
#if defined(__aarch64__)
#define NEAR HIDDEN
#else
#define NEAR
#endif
/* A definition that gives way to the program's own when both are linked together: in
 * libhakmem.a. */
#define REPLACEABLE __attribute__((weak))
/* A second exported name for a function of this translation unit. */
#if defined(__has_attribute) && __has_attribute(copy) /* gcc checks that attributes agree */
#define EXPORT_ALIAS_OF(function) \
  __attribute__((alias(#function), copy(function), visibility("default")))
#else
#define EXPORT_ALIAS_OF(function) __attribute__((alias(#function), visibility("default")))
#endif
/* Another name for a function of the same file, within this library. */
#define ALIAS_OF(function) __attribute__((alias(#function)))
/* A symbol that may be missing at run time; its address is then NULL. */
#define WEAK __attribute__((weak))
/* Refers to such a symbol without its version: the version of a symbol that the C library got later
 * would keep the library from being loaded with an older C library. */
#define UNVERSIONED(name) __asm__(".symver " #name "," #name "@")

/* One 8-byte slot of the initial TLS block: no call at access, no static-TLS exhaustion. */
#define THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

/* Data stored in the file although it is 0: the kernel finds it there by its offset. */
#define IN_FILE_DATA __attribute__((section(".data.in_file")))

/* Constant data next to data that the dynamic linker writes: a core file contains those pages, but
 * not plain constants. */
#define KEPT_IN_CORE __attribute__((section(".data.rel.ro.kept")))

/* Where code and constants lie in libhakmem.so (cmake/first.ld, docs/decisions/0012): in nearly
 * every process the first 64 KiB of the file are in memory. RESIDENT marks code that every process
 * runs; the rest lies elsewhere, in the order of cmake/sources.cmake. */
#define RESIDENT __attribute__((section(".text.resident")))
#define RESIDENT_DATA __attribute__((section(".rodata.resident")))
#define RESIDENT_IN_PART \
  __attribute__((section(".rodata.resident_in_part"))) /* only its beginning is read */
/* A variable that few processes write, or a large one: it lies after all others, which share one
 * page with .data (cmake/first.ld). */
#define RARE_DATA __attribute__((section(".bss.0rare")))
/* A table that few processes write: in libhakmem.so it lies in a page of its own, which is
 * read-only at first (cmake/first.ld). */
#define SELDOM_WRITTEN __attribute__((section(".data.seldom_written")))
/* malloc and free: their speed depends on their address by up to a fifth, so every build aligns
 * them alike. */
#define FAST_PATH __attribute__((section(".text.fast_path"), aligned(128)))

#define RUN_AT_LOAD __attribute__((constructor))
#define RUN_AT_EXIT __attribute__((destructor))

/* A function whose last call is a jump, so that its caller is the called function's, in every
 * build. */
#if defined(__clang__)
#define ENDS_IN_JUMP
#else
#define ENDS_IN_JUMP __attribute__((optimize("optimize-sibling-calls")))
#endif

#define CACHE_LINE_BYTES 64
#define CACHE_ALIGNED _Alignas(CACHE_LINE_BYTES)

/* For a local variable: calls function(&variable) at the end of its scope. */
#define ENDED_BY(function) __attribute__((cleanup(function), unused)) /* clang: not a use */

/* The return address of this function, which lies in its caller. */
#define CALLER_ADDRESS() ((uintptr_t)__builtin_return_address(0))

/* Tells the processor that this is a spin loop. */
INLINE void cpu_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* A clock that all processors share, of some GHz on x86-64, of 25 MHz to a GHz on aarch64;
 * 2^CPU_TICKS_SHIFT ticks are 3 us at most. */
#if defined(__x86_64__)
enum { CPU_TICKS_SHIFT = 12 };
#else
enum { CPU_TICKS_SHIFT = 6 };
#endif
INLINE uint64_t cpu_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

/* Hides a value's origin from the optimiser, lest it fold calloc's memset into a call of calloc, or
 * take malloc's result for fresh. */
INLINE void *opaque_pointer(void *pointer) {
  __asm__("" : "+r"(pointer));
  return pointer;
}

/* base + 8 * index. On x86-64 the address of each instruction that uses it adds the two anew, which
 * costs nothing: gcc adds them once, by an instruction more, where it knows that uses have them in
 * common. Elsewhere addresses have no room for a third part. */
INLINE char *words_from(char *base, size_t *index) {
#if defined(__x86_64__)
  __asm__("" : "+r"(*index));
  return base + *index * 8;
#else
  return opaque_pointer(base + *index * 8);
#endif
}

#endif
