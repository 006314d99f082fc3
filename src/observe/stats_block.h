/* stats_block.h: the data that other processes read of this one, with its description.
 *
 *   hak_stats_block ──▶ entries   one for each line of base/counters.def and observe/records.def
 *                   └─▶ roots     addresses to start from
 *
 * A reader (python/hakmem, a debugger) finds the exported symbol in the mapped file, or its magic
 * in the data of a stripped program, and reads the rest of the memory by the entries: nothing in it
 * depends on the version of hakmem but the structs below and `format`.  The process does nothing
 * for it, not even when it is read; it may be stopped, or a core file.
 *
 * The texts are one pool, not pointers or arrays of a fixed size: every process pays for them. All
 * of it is constant and lies where the dynamic linker has written, so that core files have it. */
#ifndef HAK_OBSERVE_STATS_BLOCK_H
#define HAK_OBSERVE_STATS_BLOCK_H

#include "base/counters.h"

/* The version of the structs in this file. */
enum { STATS_FORMAT = 1 };

struct stats_entry {
  uint32_t
      text; /* offset in the texts: name, unit (of an option its default) and meaning, each ended by a 0 */
  uint32_t record_text; /* offset in the texts, of the record that it belongs to */
  char kind;            /* 'r' record; 'f' field; 'c' constant */
  /* 'c' counter: only grows; 'g' gauge; 's' structure, not for display; 'w' structure, writable by
   * a tool */
  char role;
  /* 'u' unsigned, 'i' signed, 'd' double, 'p' address, 't' address of a text, 'r' record */
  char type;
  char padding;
  uint32_t value;         /* of a field its offset, of a record its size, of a constant its value */
  uint32_t element_bytes; /* of one element */
  uint32_t element_count; /* of an array; 1 otherwise */
};

struct stats_root {
  char name[24]; /* of the record there, or of base/counters.def's table */
  const void *address;
};

struct stats_block {
  char magic[16];       /* "hakmem-stats", aligned to 8 bytes */
  uint32_t format;      /* STATS_FORMAT */
  uint32_t block_bytes; /* of this struct */
  uint32_t entry_bytes, entry_count;
  const struct stats_entry *entries;
  uint32_t root_bytes, root_count;
  const struct stats_root *roots;
  const char *texts;
  uint64_t text_bytes;
  char version[16]; /* of the library */
};

EXPORT extern const struct stats_block hak_stats_block;

/* A counter's name and meaning, for reports. */
const char *counter_name(enum counter which);
const char *counter_meaning(enum counter which);

#endif
