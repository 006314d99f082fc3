/* probes.h: where tracers can see samples: USDT probes as OpenTelemetry names them.
 *
 *   otel_memory:alloc(ptr, size, weighted_bytes)     otel_memory:free(ptr)
 *
 * Each is one nop and a note in the file (base/probe.h).  Their semaphores are in the control record, so that a tracer that
 * raises one switches sampling on: a slow path that compares the record's word sees it. */
#ifndef HAK_PROFILE_PROBES_H
#define HAK_PROFILE_PROBES_H

#include "base/compiler.h"

void probe_alloc(const void *block, size_t requested_bytes, uint64_t weighted_bytes);
void probe_free(const void *block);

#endif
