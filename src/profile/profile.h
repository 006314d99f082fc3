/* profile.h: heap profiles, switched on from outside: the control record that a tool writes, and what the process says of
 * itself.
 *
 *   the tool                                        a thread of the program
 *     control.flags, lease_ms, …    written           slow path, or a free after the poke: word changed?
 *     control.generation            written last      its heap's magazines are armed, or disarmed
 *     heap.poke of each heap := 0xFF                  heap.profile_generation := what it has seen
 *     off: state.status, ended_ms                     noted already: whatever sleeps, the next profile is another
 *
 * The tool writes bytes, through /proc/PID/mem; nothing is executed that is not here anyway.  Law: whatever stands in the
 * control record, the process works: each field is read once for a use, and bounded there.  docs/decisions/0035. */
#ifndef HAK_PROFILE_PROFILE_H
#define HAK_PROFILE_PROFILE_H

#include "base/atomic.h"
#include "base/compiler.h"

/* ---- what the tool writes ------------------------------------------------------------------------------- */

enum { PROFILE_ON = 1 }; /* in flags; all other bits are ignored */

/* What a slow path compares with what it saw last: one word.  Kernel and tool change single bytes of it. */
struct profile_word {
  uint16_t alloc_semaphore, free_semaphore; /* tracers that follow the probes (profile/probes.h) */
  uint8_t generation;                       /* the control record has changed: written last */
  uint8_t unused[3];
};

struct profile_control {
  union {
    ATOMIC(uint64_t) word;
    struct profile_word parts;
  };
  ATOMIC(uint64_t) period_bytes;       /* one sample in so many bytes; 0: adapts */
  ATOMIC(uint64_t) lease_ms;           /* CLOCK_MONOTONIC: on until then; 0: without an end */
  ATOMIC(uint32_t) samples_per_second; /* what the period adapts to; 0: PROFILE_RATE */
  ATOMIC(uint8_t) flags;               /* PROFILE_ON */
  ATOMIC(uint8_t) stack_depth;         /* frames of a stack; 0, and more: PROFILE_DEPTH_MAX */
  ATOMIC(uint8_t) purge_request;       /* a number: when it changes what is free goes back once */
  ATOMIC(uint8_t) cost_percent;        /* of processor time that sampling may take; 0: half a percent */
};
extern struct profile_control profile_control;

INLINE struct profile_word profile_word_parts(uint64_t word) {
  union {
    uint64_t word;
    struct profile_word parts;
  } both = {word};
  return both.parts;
}
INLINE uint64_t profile_word_of(struct profile_word parts) {
  union {
    struct profile_word parts;
    uint64_t word;
  } both = {parts};
  return both.word;
}
INLINE uint8_t profile_generation_of(uint64_t word) { return profile_word_parts(word).generation; }

enum {
  PROFILE_RATE = 1000,
  PROFILE_DEPTH_MAX = 128,
  PROFILE_PERIOD_FIRST = 524288, /* bytes: of a period that adapts, until it has */
  PROFILE_PERIOD_PROBES = 524288 /* bytes: when tracers alone want samples, as OpenTelemetry says */
};
#define PROFILE_PERIOD_MIN UINT64_C(64)
#define PROFILE_PERIOD_MAX (UINT64_C(1) << 46)

/* ---- what the process says -------------------------------------------------------------------------------- */

enum profile_status {
  PROFILE_IS_OFF,
  PROFILE_IS_ON,
  PROFILE_IS_REFUSED /* HAKMEM_PROFILE=never */
};

enum { SAMPLE_SEGMENTS = 255, SITE_SEGMENTS = 128 };
struct sample_segment; /* profile/samples.h */
struct site_segment;   /* profile/sites.h */

struct profile_state {
  ATOMIC(uint32_t) status;       /* enum profile_status: what the last look found */
  ATOMIC(uint32_t) purges_begun; /* the last request that a thread has taken on */
  ATOMIC(uint32_t) purges_done;  /* the last one that has been met */
  ATOMIC(uint64_t) sessions;     /* times that it went on */
  ATOMIC(uint64_t) began_ms;     /* CLOCK_MONOTONIC: when it last went on */
  ATOMIC(uint64_t) ended_ms;     /* when it last went off */
  ATOMIC(uint64_t) period_bytes; /* new samples': one in so many bytes */
  ATOMIC(uint64_t) samples;      /* taken, by all threads */
  ATOMIC(uint64_t) live_samples;
  ATOMIC(uint64_t) lost_samples; /* taken, but there was no memory to keep them */
  ATOMIC(uint64_t)
  halvings; /* times that the table was full: half of it went, the rest counts double */
  ATOMIC(uint64_t) incomplete_stacks;
  ATOMIC(uint64_t) lost_stacks; /* there was no memory to keep them: they are site 0's */
  ATOMIC(uint64_t) sampling_ns; /* time that taking samples took, all threads' */
  ATOMIC(uint64_t) table_bytes; /* of the tables below */
  ATOMIC(uint32_t) sample_segment_count, site_segment_count;
  ATOMIC(uint64_t) site_count; /* sites[0 …]; 0 is that of stacks that were lost */
  ATOMIC(struct sample_segment *) sample_segments[SAMPLE_SEGMENTS];
  ATOMIC(struct site_segment *) site_segments[SITE_SEGMENTS];
};
extern struct profile_state profile_state;

INLINE bool profile_is_on(void) { return load_relaxed(&profile_state.status) == PROFILE_IS_ON; }

/* ---- the tables' memory ------------------------------------------------------------------------------------ */

/* Their bound: so much, and about a thousandth of what the process holds.  With what else a profile needs (the cache of rules,
 * the bitmaps of sampled slabs) it is 8 MiB and that thousandth. */
#define PROFILE_TABLE_BYTES ((uint64_t)7 << 20)
#define PROFILE_TABLE_DIVISOR 1024

/* Samples may take 5/8 of it; sites and their frames the rest. */
enum profile_table { TABLE_SAMPLES, TABLE_SITES, TABLE_FRAMES, TABLE_COUNT };

/* A piece of a table, zeroed, for good; NULL beyond that bound, and without memory. */
void *profile_take_piece(enum profile_table table, size_t bytes);
/* Back with one that is still zeroed: another thread has made it, too. */
void profile_keep_piece(enum profile_table table, void *piece);

#endif
