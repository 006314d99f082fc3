/* coherence.h: caches that keep each other coherent, under the real sources of src/.
 *
 *   machine.c   virtual threads, one for each core, and a table of the lines of 64 bytes: which
 *               cores hold them (MESI)
 *   system.c    time, waiting and the ends of threads; the rest of the operating system is the
 *               real one
 *   accesses.c  what the sources call, compiled with -fsanitize=thread: each access to memory
 *   heap.c      the loads' malloc and free, compiled as the sources are
 *   loads.c     what the threads do
 *
 * A thread has a clock of its own, and the one whose clock is lowest runs. Caches are infinite:
 * only transfers between cores are counted. Not modelled: capacity, stores that wait in a buffer,
 * lines fetched ahead. */
#ifndef COHERENCE_H
#define COHERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CORES_MAX = 256, CORES_IN_SOCKET = 64, LINE_BYTES = 64 };

/* Nanoseconds. A transfer: the line, or the right to write it, comes from another core. */
enum cost {
  COST_HIT = 1,
  COST_CALL = 5,
  COST_PAUSE = 20,
  COST_IN_SOCKET = 60,
  COST_MEMORY = 90,
  COST_CROSS_SOCKET = 140,
  COST_NEXT_THREAD = 5000
};

enum purpose { OF_ALLOCATOR, OF_PAYLOAD, PURPOSES };

/* ---- machine.c ---- */

extern unsigned core_count;

struct load {
  const char *name;
  void (*body)(unsigned thread); /* never returns */
  bool runs_freely;              /* waits for no other thread */
};
extern const struct load loads[]; /* loads.c; ends with one without a name */
void loads_start(unsigned threads);

unsigned running_core(void);
uint64_t clock_now(void);
void pass_time(uint64_t ns);
/* The thread on this core has ended and another one begins there. */
void begin_thread(void);
uint32_t thread_id(void);
/* A call of malloc or free; one of each. The measured part begins when each core has made its
 * calls. */
void count_call(void);
void count_operation(void);
/* `block`: of the program, whose payload the address is; NULL: the allocator's own. `place` is the
 * instruction. */
void access_memory(const void *address, size_t bytes, bool is_write, const void *block,
                   const void *place);
void coherence_pause(void);

/* ---- system.c ---- */

void end_thread(void);

/* ---- heap.c ---- */

void heap_start(void);
void *load_malloc(size_t bytes);
void load_free(void *block);
/* In the heap of a thread, rather than in the starter heap, a slab's record or a variable. */
bool is_of_a_thread(uintptr_t address);

#endif
