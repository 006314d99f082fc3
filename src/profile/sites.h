/* sites.h: the call stacks of samples, each kept once, with the weights allocated and freed there.
 *
 * A site's number leads to its record: segment number / SEGMENT_SITES, place number %
 * SEGMENT_SITES.  Sites are never removed.  Weights are sums over samples: each stands for S/p
 * bytes and 1/p blocks, with p = 1 − e^(−S/R) (profile/poisson.h), twice that for each halving.
 * Lock-free. */
#ifndef HAK_PROFILE_SITES_H
#define HAK_PROFILE_SITES_H

#include "profile/samples.h"

enum { SEGMENT_SITES = 256, SITE_LIFETIMES = 24, SITE_LOST = 0 };

/* Doubles, for readers from outside; only their bits are atomic. */
struct profile_weights {
  ATOMIC(uint64_t) bytes;     /* Σ S/p */
  ATOMIC(uint64_t) requested; /* Σ requested/p */
  ATOMIC(uint64_t) blocks;    /* Σ 1/p */
  ATOMIC(uint64_t) variance;  /* of bytes: Σ (S/p)² (1 − p) */
};
INLINE double real_of_bits(uint64_t bits) {
  union {
    uint64_t bits;
    double real;
  } both = {.bits = bits};
  return both.real;
}
INLINE uint64_t bits_of_real(double real) {
  union {
    double real;
    uint64_t bits;
  } both = {.real = real};
  return both.bits;
}

struct profile_site {
  uint64_t hash;
  const uintptr_t *frames;      /* return addresses, the innermost first (stack/unwind.h), then
                                   frames of Python (stack/unwind_python.h) */
  ATOMIC(uint32_t) frame_count; /* 0: the number is unused */
  bool is_complete;             /* the stack reaches the thread's start */
  ATOMIC(uint32_t) next;        /* site of the same hash row; 0: none */
  ATOMIC(uint32_t) freed_samples;
  struct profile_weights allocated;
  struct profile_weights freed;
  /* freed samples that lived 2^(i-1) ms up to 2^i ms; the last: longer */
  ATOMIC(uint32_t) lifetimes[SITE_LIFETIMES];
};

struct site_segment {
  struct profile_site sites[SEGMENT_SITES];
};

/* The site of a stack, made when it is new; SITE_LOST when there is no memory. */
uint32_t sites_find(const uintptr_t *frames, size_t frame_count, bool is_complete);
struct profile_site *sites_record(uint32_t site);
/* For stacks of which a program may make any number, as with code that it compiles: whether it is
 * known, or less of the room is taken. */
bool sites_have_room(const uintptr_t *frames, size_t count, bool is_complete, unsigned eighths);

void sites_note_allocated(const struct profile_sample *sample);
void sites_note_freed(const struct profile_sample *sample, unsigned halvings, uint64_t lived_ns);

/* The requested bytes of a sample's block change. */
void sites_note_resized(const struct profile_sample *before, unsigned halvings,
                        uint64_t requested_bytes);

#endif
