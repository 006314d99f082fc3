#include "profile/probes.h"

#include "base/probe.h"
#include "profile/profile.h"

_Static_assert(offsetof(struct profile_control, parts) == 0 &&
                   offsetof(struct profile_word, alloc_semaphore) == 0 &&
                   offsetof(struct profile_word, free_semaphore) == 2,
               "the notes below say so");

NOINLINE void probe_alloc(const void *block, size_t requested_bytes, uint64_t weighted_bytes) {
  PROBE_3("otel_memory", "alloc", "profile_control", block, requested_bytes, weighted_bytes);
}

NOINLINE void probe_free(const void *block) {
  PROBE_1("otel_memory", "free", "profile_control+2", block);
}
