/* Which C library it is: by its banner, for messages and the output; no layout depends on it. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap.h"

enum { PIECE_BYTES = 1 << 20, OVERLAP_BYTES = 256, FILE_MAX = 1 << 28 };

/* "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36." */
static bool take_version(struct heap *heap, const char *text, size_t bytes) {
  const char *banner = memmem(text, bytes, "GNU C Library", 13);
  if (banner == NULL) return false;
  size_t rest = bytes - (size_t)(banner - text);
  if (rest > OVERLAP_BYTES) rest = OVERLAP_BYTES;
  const char *number = memmem(banner, rest, "version ", 8), *end = banner + rest;
  if (number == NULL) return false;
  char *out = heap->layout.version;
  size_t room = sizeof heap->layout.version - 1;
  for (number += 8; number < end && room > 0; ++number, --room) {
    bool is_last = *number == '.' && (number + 1 == end || number[1] < '0' || number[1] > '9');
    if (is_last || (*number != '.' && (*number < '0' || *number > '9'))) break;
    *out++ = *number;
  }
  return out > heap->layout.version;
}

static bool search_file(struct heap *heap, const char *path) {
  int file = *path == '/' ? target_open_file(heap->target, path) : -1;
  if (file < 0) return false;
  char *piece = allocated(NULL, PIECE_BYTES);
  bool is_found = false;
  for (off_t at = 0; at < FILE_MAX && !is_found; at += PIECE_BYTES - OVERLAP_BYTES) {
    ssize_t got = pread(file, piece, PIECE_BYTES, at);
    if (got <= 0) break;
    is_found = take_version(heap, piece, (size_t)got);
    if (got < PIECE_BYTES) break;
  }
  free(piece);
  close(file);
  return is_found;
}

static bool search_memory(struct heap *heap, const struct mapping *mapping) {
  char *piece = allocated(NULL, PIECE_BYTES);
  bool is_found = false;
  for (uint64_t at = mapping->begin; at < mapping->end && !is_found;
       at += PIECE_BYTES - OVERLAP_BYTES) {
    size_t size = mapping->end - at < PIECE_BYTES ? (size_t)(mapping->end - at) : PIECE_BYTES;
    size_t got = memory_read(heap->target, at, piece, size);
    is_found = take_version(heap, piece, got);
  }
  free(piece);
  return is_found;
}

/* The file that this data is of: zeroed data follows its file. */
static const char *path_of(const struct target *target, uint64_t data) {
  const struct mapping *holder = mapping_of(target, data);
  while (holder && holder > target->mappings && holder->is_anonymous &&
         holder[-1].end == holder->begin)
    --holder;
  return holder ? holder->path : NULL;
}

/* `data`: an address in the library's data; 0 if main_arena was not found.  A file that was deleted
 * since, or that is not on a core's machine, is searched in memory. */
void version_find(struct heap *heap, uint64_t data) {
  const struct target *target = heap->target;
  const char *path = path_of(target, data), *last = "";
  for (size_t i = 0; i < target->mapping_count; ++i) {
    const struct mapping *mapping = &target->mappings[i];
    bool is_candidate = path ? strcmp(mapping->path, path) == 0 : mapping->is_executable;
    if (mapping->is_anonymous || !mapping->is_private || !is_candidate) continue;
    if (strcmp(last, mapping->path) != 0 && search_file(heap, mapping->path)) return;
    last = mapping->path;
  }
  for (size_t i = 0; path && i < target->mapping_count; ++i) {
    const struct mapping *mapping = &target->mappings[i];
    bool is_candidate = !mapping->is_anonymous && strcmp(mapping->path, path) == 0;
    if (is_candidate && mapping->is_readable && !mapping->is_writable &&
        search_memory(heap, mapping))
      return;
  }
}
