#include "observe/report_heaps.h"

#include "cache/heap.h"
#include "named/named_heap.h"

enum { HEAPS_SHOWN = 20, NAME_COLUMN = HEAP_NAME_BYTES - 1 };

_Static_assert(sizeof((struct hak_figures *)NULL)->name == HEAP_NAME_BYTES, "one size");

static bool is_there(const struct hak_heap *heap) {
  return !named_is(heap, NAMED_UNUSED) && heap->owner.name && !named_is(heap, NAMED_LANE);
}

static uint64_t live_bytes_of(const struct hak_heap *heap) {
  const struct heap *own = load_relaxed(&heap->thread_heap);
  return own ? (uint64_t)load_relaxed(&own->owner.bytes_out) : named_live_bytes(heap);
}

/* Adds a part's figures; returns the blocks that it has freed. Only summed over all parts they
 * cannot exceed the allocated ones. */
static uint64_t add_part(struct hak_figures *figures, const struct hak_heap *part) {
  uint64_t freed = load_relaxed(&part->freed_blocks) + load_relaxed(&part->freed_remotely);
  uint64_t peak_bytes = load_relaxed(&part->peak_bytes);
  figures->allocations += load_relaxed(&part->allocated_blocks); /* read after the freed ones */
  if (peak_bytes > figures->peak_bytes) figures->peak_bytes = peak_bytes;
  return freed;
}

void heap_figures_take(const struct hak_heap *heap, struct hak_figures *figures) {
  const struct hak_heap *part;
  uint64_t freed = 0;
  *figures = (struct hak_figures){
      .live_bytes = live_bytes_of(heap),
      .limit_bytes = load_relaxed(&heap->limit_bytes),
      .refusals = load_relaxed(&heap->refusals),
      .tag = load_relaxed(&heap->tag),
  };
  for (unsigned at = 0; (part = named_next_part(heap, &at));) freed += add_part(figures, part);
  if (freed < figures->allocations) /* a misuse may count twice */
    figures->live_blocks = figures->allocations - freed;
  if (!load_relaxed(&heap->thread_heap) && figures->live_bytes > figures->peak_bytes)
    figures->peak_bytes = figures->live_bytes;
  for (unsigned at = 0; at < HEAP_NAME_BYTES - 1; at++) figures->name[at] = heap->name[at];
}

static const char *kind_of(const struct hak_heap *heap) {
  return named_is(heap, NAMED_OF_THREAD) ? "thread" : "program";
}

/* The threads whose malloc takes the heap's blocks. */
static uint32_t threads_of(const struct hak_heap *heap) {
  uint32_t users = load_relaxed(&heap->users);
  return users == NAMED_CLOSED ? 0 : users;
}

/* ---- as text --------------------------------------------------------------------------------- */

/* Inserts the heap into those with most live bytes; returns their number. */
static unsigned add_largest(const struct hak_heap *largest[], unsigned count,
                            const struct hak_heap *heap) {
  unsigned place = count < HEAPS_SHOWN ? count : HEAPS_SHOWN;
  for (; place && live_bytes_of(largest[place - 1]) < live_bytes_of(heap); place--)
    if (place < HEAPS_SHOWN) largest[place] = largest[place - 1];
  if (place < HEAPS_SHOWN) largest[place] = heap;
  return count < HEAPS_SHOWN ? count + 1 : HEAPS_SHOWN;
}

static void text_heap(struct text *text, const struct hak_heap *heap) {
  struct hak_figures figures;
  heap_figures_take(heap, &figures);
  text_string(text, "  ");
  size_t begin = text->wanted_bytes;
  text_name(text, figures.name);
  while (text->wanted_bytes - begin < NAME_COLUMN) text_char(text, ' ');
  text_format(text, "%20zu%14zu%14zu%14zu%14zu%10zu%9u  %s\n", figures.tag, figures.live_bytes,
              figures.live_blocks, figures.peak_bytes, figures.limit_bytes, figures.refusals,
              threads_of(heap), kind_of(heap));
}

void report_heaps_as_text(struct text *text) {
  const struct hak_heap *largest[HEAPS_SHOWN];
  unsigned count = 0;
  uint64_t all = 0;
  const struct hak_heap *heap;
  for (uint32_t number = 0; (heap = named_next(&number));) {
    if (!is_there(heap)) continue;
    count = add_largest(largest, count, heap);
    all++;
  }
  if (!all) return;
  text_format(text, "heaps\n  %-31s%20s%14s%14s%14s%14s%10s%9s  %s\n", "name", "tag", "live_bytes",
              "live_blocks", "peak_bytes", "limit_bytes", "refusals", "threads", "of");
  for (unsigned place = 0; place < count; place++) text_heap(text, largest[place]);
  if (all > count) text_format(text, "  and %zu more\n", all - count);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void json_escaped(struct text *text, unsigned char sign) {
  static const char digits[] = "0123456789abcdef";
  text_string(text, "\\u00");
  text_char(text, digits[sign / 16]);
  text_char(text, digits[sign % 16]);
}

void report_json_string(struct text *text, const char *string) {
  const unsigned char *at = (const unsigned char *)string;
  text_char(text, '"');
  while (*at) {
    unsigned count = utf8_bytes(at);
    if (!count)
      text_string(text, "\\ufffd");
    else if (*at < ' ' || *at == '"' || *at == '\\' || *at == 0x7F)
      json_escaped(text, *at);
    else
      for (unsigned place = 0; place < count; place++) text_char(text, (char)at[place]);
    at += count ? count : 1;
  }
  text_char(text, '"');
}

static void json_heap(struct text *text, const struct hak_heap *heap) {
  struct hak_figures figures;
  heap_figures_take(heap, &figures);
  text_string(text, "{\"name\":");
  report_json_string(text, figures.name);
  text_format(text, ",\"kind\":\"%s\",\"tag\":%zu,\"live_bytes\":%zu,\"live_blocks\":%zu",
              kind_of(heap), figures.tag, figures.live_bytes, figures.live_blocks);
  text_format(text, ",\"peak_bytes\":%zu,\"limit_bytes\":%zu,\"refusals\":%zu", figures.peak_bytes,
              figures.limit_bytes, figures.refusals);
  text_format(text, ",\"threads\":%u,\"allocated_blocks\":%zu}", threads_of(heap),
              figures.allocations);
}

void report_heaps_as_json(struct text *text) {
  const char *separator = "";
  text_char(text, '[');
  const struct hak_heap *heap;
  for (uint32_t number = 0; (heap = named_next(&number));) {
    if (!is_there(heap)) continue;
    text_string(text, separator);
    json_heap(text, heap);
    separator = ",";
  }
  text_char(text, ']');
}
