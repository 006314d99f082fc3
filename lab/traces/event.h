/* event.h: the form of a recording: a header, then events of 16 bytes in the order of one shared counter.
 *
 * A block's end is recorded before the C library frees it, and its beginning after the C library has handed it out: so an address never
 * has two lives at a time. An event whose operation is NONE was cut off, by a signal or the end of its thread. */
#ifndef LAB_TRACES_EVENT_H
#define LAB_TRACES_EVENT_H

#include <stdint.h>

enum operation {
  OPERATION_NONE,
  OPERATION_TAKE,
  OPERATION_FREE,
  OPERATION_MOVE,
  OPERATION_THREAD_END
};

struct event {
  uint64_t address;
  uint32_t size; /* of a taken block; at most UINT32_MAX */
  uint16_t thread;
  uint16_t operation; /* MOVE: a FREE by realloc, whose TAKE follows */
};

#define TRACE_MAGIC UINT64_C(0x31656361726b6168) /* "hakrace1" */

struct header {
  uint64_t magic;
  _Alignas(64) _Atomic uint64_t count; /* of events; more were asked for where it exceeds `room` */
  _Alignas(64) uint64_t room;
};

#endif
