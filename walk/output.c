/* The result, as one JSON object. */
#include "output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 8000, COARSE_FROM = 1 << 13, MMAPPED_MAX = 1000 };

static struct {
  char *text;
  size_t used, room;
} out;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...) {
  if (out.room - out.used < 4096) {
    out.room = 2 * out.room + (1 << 16);
    out.text = allocated(out.text, out.room);
  }
  va_list arguments;
  va_start(arguments, format);
  out.used += (size_t)vsnprintf(out.text + out.used, out.room - out.used, format, arguments);
  va_end(arguments);
}

static void field(const char *name, uint64_t value) {
  say("\"%s\":%llu,", name, (unsigned long long)value);
}

/* Replaces the comma after the last field. */
static void end_with(char bracket) {
  if (out.text[out.used - 1] == ',') --out.used;
  say("%c", bracket);
}

static void say_layout(const struct heap *heap) {
  const struct layout *layout = &heap->layout;
  say(*layout->version ? "{\"libc\":\"%s\",\"layout\":{" : "{\"libc\":null%s,\"layout\":{",
      layout->version);
  field("bins_offset", layout->bins_offset);
  field("tcache_bytes", layout->tcache_bytes);
  field("heap_info_bytes", layout->heap_info_bytes);
  field("heap_bytes", layout->heap_bytes);
  say("\"is_safe_linked\":%s},", layout->is_safe_linked ? "true" : "false");
  field("page_bytes", heap->target->page_bytes);
}

/* Chunks of fastbins, which are cached, become part of whole pages where malloc_trim merges
 * them. */
static void say_resident(const struct account *account) {
  uint64_t free = account->resident[FREE], whole = account->resident[WHOLE];
  uint64_t cached = account->resident[CACHED], top = account->resident[TOP];
  uint64_t from_cached = whole > free ? whole - free : 0;
  uint64_t from_top = account->top_whole < top ? account->top_whole : top;
  say("\"resident\":{");
  field("live", account->resident[LIVE]);
  field("free_pinned", whole > free ? 0 : free - whole);
  field("free_whole", whole + from_top);
  field("top", top - from_top);
  field("cached", cached > from_cached ? cached - from_cached : 0);
  field("headers", account->resident[HEADERS]);
  field("unused_tail", account->resident[UNUSED]);
  end_with('}');
  say(",");
  field("top_whole", from_top);
}

static void say_arena(const struct heap *heap, size_t index) {
  const struct arena *arena = &heap->arenas[index];
  const struct account *account = &arena->account;
  say("{");
  field("address", arena->address);
  say("\"is_main\":%s,", arena->is_main ? "true" : "false");
  field("threads", arena->threads);
  field("system_bytes", arena->system_bytes);
  field("max_system_bytes", arena->max_system_bytes);
  say("\"heaps\":[");
  for (size_t i = 0; i < heap->region_count; ++i) {
    const struct region *region = &heap->regions[i];
    if (region->arena != index) continue;
    say("{");
    field("begin", region->begin);
    field("end", region->end);
    field("walked_to", region->walked_to);
    field("mapped_end", region->mapped_end);
    end_with('}');
    say(",");
  }
  end_with(']');
  say(",");
  field("live_bytes", account->live_bytes);
  field("live_chunks", account->live_chunks);
  field("free_bytes", account->free_bytes);
  field("free_chunks", account->free_chunks);
  field("top_bytes", account->top_bytes);
  field("tcache_bytes", account->tcache_bytes);
  field("tcache_chunks", account->tcache_chunks);
  field("fastbin_bytes", account->fastbin_bytes);
  field("fastbin_chunks", account->fastbin_chunks);
  say_resident(account);
  field("foreign_bytes", account->foreign_bytes);
  field("unknown_bytes", account->unknown_bytes);
  end_with('}');
  say(",");
}

static int by_size(const void *left, const void *right) {
  uint64_t a = ((const struct mmapped *)left)->bytes, b = ((const struct mmapped *)right)->bytes;
  return (a < b) - (a > b);
}

static void say_mmapped(struct heap *heap) {
  uint64_t bytes = 0, resident = 0, cached = 0;
  for (size_t i = 0; i < heap->mmapped_count; ++i) {
    bytes += heap->mmapped[i].bytes;
    resident += heap->mmapped[i].resident;
    if (heap->mmapped[i].is_cached) cached += heap->mmapped[i].bytes;
  }
  field("mmapped_chunks", heap->mmapped_count);
  field("mmapped_bytes", bytes);
  field("mmapped_resident", resident);
  field("mmapped_cached", cached);
  if (heap->parameters.address) {
    field("mmapped_chunks_counted", heap->parameters.mmaps);
    field("mmapped_bytes_counted", heap->parameters.mmapped_bytes);
  }
  say("\"mmapped\":[");
  if (heap->mmapped_count)
    qsort(heap->mmapped, heap->mmapped_count, sizeof *heap->mmapped, by_size);
  for (size_t i = 0; i < heap->mmapped_count && i < MMAPPED_MAX; ++i) {
    say("{");
    field("address", heap->mmapped[i].chunk + HEADER_BYTES);
    field("bytes", heap->mmapped[i].bytes);
    field("resident", heap->mmapped[i].resident);
    say("\"is_cached\":%s},", heap->mmapped[i].is_cached ? "true" : "false");
  }
  end_with(']');
  say(",");
}

/* Many different sizes are rounded up to a grid of 64 steps an octave. */
static size_t coarse_end(size_t place) {
  size_t step = 1;
  while (step * 128 <= place) step *= 2;
  size_t end = (place / step + 1) * step;
  return end < EXACT_SIZES ? end : EXACT_SIZES;
}

static void say_sizes(const struct account_of_sizes *sizes) {
  size_t rows = 0;
  for (size_t i = 0; i < SIZES; ++i) rows += sizes[i].live || sizes[i].cached || sizes[i].free;
  say("\"sizes\":[");
  for (size_t i = 0; i < SIZES;) {
    size_t end = i + 1;
    if (rows > ROWS_MAX && i >= COARSE_FROM / CHUNK_ALIGNMENT && i < EXACT_SIZES)
      end = coarse_end(i);
    struct account_of_sizes sum = {0, 0, 0};
    size_t last = i;
    for (; i < end; ++i) {
      if (sizes[i].live || sizes[i].cached || sizes[i].free) last = i;
      sum.live += sizes[i].live;
      sum.cached += sizes[i].cached;
      sum.free += sizes[i].free;
    }
    if (sum.live || sum.cached || sum.free)
      say("[%llu,%llu,%llu,%llu],", (unsigned long long)size_of_place(last),
          (unsigned long long)sum.live, (unsigned long long)sum.cached,
          (unsigned long long)sum.free);
  }
  end_with(']');
  say(",");
}

static void say_broken(const struct findings *findings) {
  static const char *const WHAT[] = {"size", "prev_size", "links", "fastbin", "tcache"};
  static const char *const STATE[] = {"live", "free", "cached", "unknown", "top"};
  say("\"broken\":[");
  for (size_t i = 0; i < findings->count; ++i) {
    const struct finding *finding = &findings->list[i];
    say("{");
    field("arena", finding->arena);
    field("chunk", finding->chunk);
    say("\"what\":\"%s\",\"before\":", WHAT[finding->what]);
    if (finding->before) {
      say("{");
      field("address", finding->before + HEADER_BYTES);
      field("bytes", finding->before_bytes - 8);
      say("\"state\":\"%s\"}", STATE[finding->before_state]);
    } else {
      say("null");
    }
    say(",\"detail\":\"%s\"},", finding->detail);
  }
  end_with(']');
  say(",");
}

static double explained_share(const struct heap *heap) {
  uint64_t unknown = 0, all = 0;
  for (size_t i = 0; i < heap->arena_count; ++i) unknown += heap->arenas[i].account.unknown_bytes;
  for (size_t i = 0; i < heap->region_count; ++i)
    if (heap->regions[i].end > heap->regions[i].begin)
      all += heap->regions[i].end - heap->regions[i].begin;
  return all && unknown < all ? 1 - (double)unknown / (double)all : all ? 0 : 1;
}

void output(struct heap *heap, const struct account_of_sizes *sizes,
            const struct findings *findings, uint64_t began_ns) {
  say_layout(heap);
  say("\"arenas\":[");
  for (size_t i = 0; i < heap->arena_count; ++i) say_arena(heap, i);
  end_with(']');
  say(",");
  say_mmapped(heap);
  say_sizes(sizes);
  say_broken(findings);
  say("\"explained_share\":%.6f,\"seconds\":%.3f}\n", explained_share(heap),
      (double)(now_ns() - began_ns) / 1e9);
  for (size_t done = 0; done < out.used;) {
    ssize_t part = write(STDOUT_FILENO, out.text + done, out.used - done);
    if (part <= 0) refuse("the output cannot be written");
    done += (size_t)part;
  }
}
