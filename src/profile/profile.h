/* profile.h: heap profiles, switched on from outside: the control record that a tool writes, and
 * the state that the process publishes.
 *
 *   the tool                                        a thread of the program
 *     control.flags, lease_ms, …    written           slow path, or a free after the poke: word changed?
 *     control.generation            written last      its heap's magazines are armed, or disarmed
 *     heap.poke of each heap := 0xFF                  heap.profile_generation := what it has seen
 *     off: state.status, ended_ms                     noted already: the next profile is a new
 *                                                     one even if all threads sleep
 *
 * The tool writes bytes, through /proc/PID/mem; no code is injected. Law: the process works with
 * any content of the control record: each field is read once for a use, and bounded there.
 * docs/decisions/0035. */
#ifndef HAK_PROFILE_PROFILE_H
#define HAK_PROFILE_PROFILE_H

#include "base/atomic.h"
#include "base/compiler.h"

/* ---- written by the tool --------------------------------------------------------------------- */

/* In flags; all other bits are ignored. */
enum {
  PROFILE_ON = 1,
  PROFILE_LIVES = 2 /* samples that are freed are kept, too (profile/lives.h) */
};

/* The word that a slow path compares with its last look. Kernel and tool change single bytes of
 * it. */
struct profile_word {
  uint16_t alloc_semaphore, free_semaphore; /* tracers that follow probes (profile/recording.c) */
  uint8_t generation;                       /* the control record has changed: written last */
  uint8_t unused[3];
};

struct profile_control {
  union {
    ATOMIC(uint64_t) word;
    struct profile_word parts;
  };
  ATOMIC(uint64_t) period_bytes;       /* bytes per sample; 0: adaptive */
  ATOMIC(uint64_t) lease_ms;           /* CLOCK_MONOTONIC: on until then; 0: without an end */
  ATOMIC(uint32_t) samples_per_second; /* target of an adaptive period; 0: PROFILE_RATE */
  ATOMIC(uint8_t) flags;               /* PROFILE_ON, PROFILE_LIVES */
  ATOMIC(uint8_t) stack_depth;         /* frames of a stack; 0: PROFILE_DEPTH_MAX, also the bound */
  ATOMIC(uint8_t) purge_request;       /* a number: at each change free memory is purged once */
  ATOMIC(uint8_t) cost_percent;        /* percent of processor time that sampling may use; 0: 0.5 */
  ATOMIC(uint64_t) trace_lease_ms; /* likewise: all events are recorded until then; 0: none are */
  /* How samples find functions of Python (struct python_recipe of stack/unwind_python.h); 0: they
   * do not. */
  ATOMIC(uint64_t) python_code_type;
  ATOMIC(uint64_t) python_thread;
  ATOMIC(uint64_t) python_frame;
  ATOMIC(uint64_t) python_code;
  ATOMIC(uint64_t) python_holder;
};
extern struct profile_control profile_control;

union profile_word_as {
  uint64_t word;
  struct profile_word parts;
};
INLINE struct profile_word profile_word_parts(uint64_t word) {
  return (union profile_word_as){.word = word}.parts;
}
INLINE uint64_t profile_word_of(struct profile_word parts) {
  return (union profile_word_as){.parts = parts}.word;
}
INLINE uint8_t profile_generation_of(uint64_t word) { return profile_word_parts(word).generation; }

enum {
  PROFILE_RATE = 1000,
  PROFILE_DEPTH_MAX = 128,
  PROFILE_PYTHON_WORDS_MAX = 128, /* after a stack's addresses (stack/unwind_python.h) */
  PROFILE_PERIOD_FIRST = 524288,  /* bytes: the first value of an adaptive period */
  PROFILE_PERIOD_PROBES = 524288 /* bytes: when tracers alone want samples, as OpenTelemetry says */
};
#define PROFILE_PERIOD_MIN UINT64_C(64)
#define PROFILE_PERIOD_MAX (UINT64_C(1) << 46)

/* ---- published by the process ---------------------------------------------------------------- */

enum profile_status {
  PROFILE_IS_OFF,
  PROFILE_IS_ON,
  PROFILE_IS_REFUSED /* HAKMEM_PROFILE=never */
};

enum { SAMPLE_SEGMENTS = 255, SITE_SEGMENTS = 128 };

struct profile_state {
  ATOMIC(uint32_t) status;       /* enum profile_status, at the last look */
  ATOMIC(uint32_t) purges_begun; /* the last request that a thread has taken on */
  ATOMIC(uint32_t) purges_done;  /* the last request that was completed */
  ATOMIC(uint64_t) sessions;     /* times that a profile was switched on */
  ATOMIC(uint64_t) began_ms;     /* CLOCK_MONOTONIC: when it was last switched on */
  ATOMIC(uint64_t) ended_ms;     /* when it was last switched off */
  ATOMIC(uint64_t) period_bytes; /* of new samples: bytes per sample */
  ATOMIC(uint64_t) samples;      /* taken, by all threads */
  ATOMIC(uint64_t) live_samples;
  ATOMIC(uint64_t) lost_samples; /* taken, but there was no memory to keep them */
  ATOMIC(uint64_t)
  halvings; /* times that the table was full: half of it went, the rest counts double */
  ATOMIC(uint64_t) incomplete_stacks;
  ATOMIC(uint64_t) lost_stacks; /* no memory to keep them: counted at site 0 */
  ATOMIC(uint64_t) cut_stacks;  /* little memory to keep them: without frames of Python */
  ATOMIC(uint64_t) sampling_ns; /* time spent on taking samples, by all threads */
  ATOMIC(uint64_t) table_bytes; /* of the tables below */
  ATOMIC(uint64_t) site_count;  /* sites[0 …]; site 0 stands for lost stacks */
  ATOMIC(void *) sample_segments[SAMPLE_SEGMENTS]; /* of profile/samples.h */
  ATOMIC(void *) site_segments[SITE_SEGMENTS];     /* of profile/sites.h */
  ATOMIC(void *) life_log;                         /* of profile/lives.h */
};
extern struct profile_state profile_state;

INLINE bool profile_is_on(void) { return load_relaxed(&profile_state.status) == PROFILE_IS_ON; }

/* ---- the tables' memory ---------------------------------------------------------------------- */

/* The tables' bound: PROFILE_TABLE_BYTES and about a thousandth of the process's memory. With the
 * rest of a profile (the cache of rules, the bitmaps of sampled slabs) it is 8 MiB and that
 * thousandth. */
#define PROFILE_TABLE_BYTES ((uint64_t)7 << 20)
#define PROFILE_TABLE_DIVISOR 1024

/* Samples may take 5/8 of it; all others the rest. */
enum profile_table { TABLE_SAMPLES, TABLE_SITES, TABLE_FRAMES, TABLE_LIVES, TABLE_COUNT };

/* Puts a zeroed piece of a table, never freed, in the place of `before`; returns it, or the one
 * that another thread has put there first. NULL beyond that bound or without memory. */
void *profile_make_piece(enum profile_table table, ATOMIC(void *) *place, void *before,
                         size_t bytes);
/* The table of samples has a share of its own: others may also be below (eighths - 2) / 16 of the
 * bound. */
bool profile_tables_are_below(unsigned eighths);

#endif
