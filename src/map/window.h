/* window.h: the part of the address space that hakmem's memory lives in, and the owner of each 64
 * KiB granule in it.
 *
 *   window     [ chunk 0 | chunk 1 | chunk 2 | … frontier →          ]   2 MiB chunks, random base
 *   maps       [ room | read-only | chunk map ◀ | ▶ owner map | read-only | room ]
 *   owner map  u32 per granule, upwards: owner tag << 10 | hardened << 9 | the class's place
 *   chunk map  pointer per chunk, downwards: metadata of the chunk
 *
 * One load of the owner map gives the fast path of free all it needs about an address. Both maps
 * are reserved for reading and made writable from where they meet as the frontier moves, so they
 * cost neither commit charge nor memory for unused chunks, but for the first 2 GiB's entries: those
 * are one mapping, of which a small process touches one page. `granule_count`, the bound that the
 * fast path compares with, never exceeds the reservation. The window itself is not reserved: chunks
 * are mapped at the frontier, never over anything, and neighbours merge into one VMA.
 *
 * Foreign mappings at the frontier are passed over, in steps that double, and do not count: the
 * window then ends as much later, and its maps grow where they are (docs/decisions/0008).
 *
 * Law: an entry is non-zero only for granules of chunks that were mapped; entry == 0 means that no
 * block begins in the granule. */
#ifndef HAK_MAP_WINDOW_H
#define HAK_MAP_WINDOW_H

#include "base/atomic.h"
#include "map/size_class.h"

#define CHUNK_SHIFT 21
/* 2 MiB: a SuperSlab, or a piece of a range arena. */
#define CHUNK_BYTES ((size_t)1 << CHUNK_SHIFT)
#define GRANULES_PER_CHUNK ((unsigned)(CHUNK_BYTES / GRANULE_BYTES))

/* An entry's lowest bits: the place of a class (size_class.h) of seven bits, and a bit that makes
 * it no class of a magazine: free then takes the slow path. */
enum {
  MAP_CLASS_BIG =
      CLASS_COUNT, /* head of a Big block, and of any range of a named heap or in hardened mode */
  MAP_CLASS_MAX = 0x7F,
  MAP_HARDENED =
      (MAP_CLASS_MAX + 1) * PLACES_A_CLASS /* or guarded: the requested bytes are known */
};
_Static_assert((int)MAP_CLASS_BIG <= MAP_CLASS_MAX,
               "seven bits tell whether a live entry is a slab's");

/* The rest is the tag: the number of a heap, below MAP_TAG_NAMED (of a range; in hardened mode of a
 * slab, too), or one of these. */
#define MAP_TAG_SHIFT 10
#define MAP_CLASS_MASK ((1u << MAP_TAG_SHIFT) - 1)
#define MAP_TAG_NONE 0u           /* no owner: the block or slab is free */
#define MAP_TAG_THREADS 0x400u    /* a thread's slab: all threads' magazines take its blocks */
#define MAP_TAG_NAMED 0x80000000u /* and a named heap's number (named/named_heap.h) */
/* Live, outside any heap: a Big block. */
#define MAP_TAG_UNOWNED 0xFFFFFC00u
#define MAP_HEAP_NUMBERS (MAP_TAG_NAMED >> MAP_TAG_SHIFT) /* a heap's number is below */

INLINE uint32_t map_entry(uint32_t tag, unsigned class) { return tag | class * PLACES_A_CLASS; }

/* Live blocks have a tag; free or unused granules have none. */
INLINE bool map_entry_is_live(uint32_t entry) { return (entry & ~MAP_CLASS_MASK) != MAP_TAG_NONE; }

/* The class of a slab's or a range's blocks; SLAB_CLASS_COUNT or more for a range. */
INLINE unsigned map_slab_class(uint32_t entry) { return entry / PLACES_A_CLASS & MAP_CLASS_MAX; }
/* The same of a live entry that may be of hardened mode, which has then CLASS_COUNT or more. */
INLINE unsigned map_class(uint32_t entry) { return (entry & MAP_CLASS_MASK) / PLACES_A_CLASS; }
/* The place of the class of a thread's slab, PLACES_END or more of any other entry; and the
 * class. */
INLINE uint32_t map_threads_place(uint32_t entry) { return entry ^ MAP_TAG_THREADS; }
INLINE unsigned map_threads_class(uint32_t entry) {
  return map_threads_place(entry) / PLACES_A_CLASS;
}

/* A live block, or a slab, of a named heap. */
INLINE bool map_entry_is_named(uint32_t entry) {
  return entry - MAP_TAG_NAMED < MAP_TAG_UNOWNED - MAP_TAG_NAMED;
}
/* A range of closed pages, live or free (checked/checked_range.h). */
INLINE bool map_entry_is_closed(uint32_t entry) {
  return (entry & MAP_CLASS_MASK) == map_entry(MAP_HARDENED, MAP_CLASS_BIG);
}
/* A range that counts as Big. */
INLINE bool map_entry_is_big(uint32_t entry) { return map_slab_class(entry) >= CLASS_COUNT; }

struct window {
  uintptr_t base;                /* first byte; constant from the first chunk on */
  ATOMIC(size_t) granule_count;  /* granules whose map entries may be read */
  ATOMIC(size_t) deleted_count;  /* the bound of delete[] and sized delete; 0: all are slow */
  ATOMIC(uint32_t) *owner_map;   /* constant after window_init */
  ATOMIC(void *) *chunk_map_end; /* constant after window_init; the first entry lies below it */
  ATOMIC(size_t) chunk_limit;    /* chunks in the whole window, foreign places included */
  ATOMIC(size_t) frontier_chunk; /* chunks from here on were never taken */
  ATOMIC(size_t) array_bound;    /* new[] of this many bytes takes its slow path; 0: each does */
  uint32_t hardened_bit;         /* MAP_HARDENED in hardened mode, else 0; constant */
};

extern struct window window NEAR;

/* Places the window; false when not even the smallest fits.  Not thread-safe: called once. */
bool window_init(uint64_t wanted_bytes);

/* In a forked child: frees the word that threads wait for. */
void window_after_fork(void);

/* Makes new[], delete[] and sized deletes always take their slow path: the program has operators of
 * its own (foreign/operators.h). Call before the first chunk is taken. */
void window_divert_operators(void);

/* Index of the granule of any address; >= window.granule_count for a foreign one. */
INLINE size_t granule_of(uintptr_t address) { return (address - window.base) >> GRANULE_SHIFT; }
INLINE uintptr_t granule_address(size_t granule) {
  return window.base + (granule << GRANULE_SHIFT);
}
INLINE uintptr_t chunk_address(size_t chunk) { return window.base + (chunk << CHUNK_SHIFT); }

/* Whether an address belongs to the window, allocated or not. */
INLINE bool is_in_window(uintptr_t address) {
  return granule_of(address) < load_relaxed(&window.chunk_limit) * GRANULES_PER_CHUNK;
}

/* The map entry of an address, 0 when it lies outside the part in use. */
INLINE uint32_t owner_map_entry(uintptr_t address) {
  size_t granule = granule_of(address);
  /* relaxed: a thread with a pointer into a granule has synchronised with its allocation. */
  if (granule >= load_relaxed(&window.granule_count)) return 0;
  return load_relaxed(&window.owner_map[granule]);
}

INLINE void owner_map_set(size_t granule, uint32_t entry) {
  store_relaxed(&window.owner_map[granule], entry);
}

/* Marks granules in which no block begins. The second form is for many: whole pages of the map go
 * back to the system. */
enum { OWNER_MAP_MANY = 4096 };
void owner_map_clear_many(size_t granule, size_t count);
INLINE void owner_map_clear(size_t granule, size_t count) {
  if (UNLIKELY(count >= OWNER_MAP_MANY)) {
    owner_map_clear_many(granule, count);
    return;
  }
  for (size_t end = granule + count; granule < end; granule++) owner_map_set(granule, 0);
}

INLINE ATOMIC(void *) *chunk_map_entry(size_t chunk) {
  return window.chunk_map_end - 1 - (ptrdiff_t)chunk;
}
/* The metadata that belongs to the chunk of an address inside the part in use; may be NULL. */
INLINE void *chunk_metadata(size_t chunk) {
  return load_acquire(chunk_map_entry(chunk)); /* pairs with the release in chunk_publish */
}
INLINE void chunk_publish(size_t chunk, void *metadata) {
  store_release(chunk_map_entry(chunk), metadata);
}

/* A run of chunks: its length, the chunks after it that stay unmapped, and the unmapped margin at
 * either end. */
struct window_piece {
  size_t count, guard_count, margin_bytes;
};
/* Takes chunks that were never used and maps them; returns the first one's number, or NO_CHUNK when
 * any is refused. Lock-free, unless the maps must be extended: at 2, 4, 8 ... GiB. */
#define NO_CHUNK SIZE_MAX
size_t window_grow(struct window_piece piece);
/* Unmaps chunks that window_grow has just taken and the caller has not published. */
void window_give_back(size_t first, struct window_piece piece);

/* Closed pages that the window will never reach as it grows, so never addresses of blocks (os.h,
 * os_reserve_closed); NULL when refused. */
void *window_reserve_outside(size_t bytes);

/* Addresses of hakmem's occupied by a foreign mapping are tried again every OCCUPIED_RETRY_MS: true
 * for one thread then; `tried_ms` is the time of the last try. */
enum { OCCUPIED_RETRY_MS = 10000 };
bool window_tries_occupied_again(ATOMIC(uint32_t) *tried_ms);

#endif
