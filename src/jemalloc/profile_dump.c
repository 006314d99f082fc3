/* profile_dump.c: hakmem's heap profile as a file that jeprof reads.
 *
 *   heap_v2/1                               bytes a sample: 1, as these are estimates of all blocks
 *     t*: blocks: bytes [blocks: bytes]     live, and allocated since the start
 *   @ 0x… 0x…                               a call stack, innermost return address first
 *     t*: blocks: bytes [blocks: bytes]
 *   MAPPED_LIBRARIES:                       /proc/self/maps */
#include <errno.h>

#include "base/text.h"
#include "jemalloc/names.h"
#include "os/os.h"
#include "profile/sites.h"
#include "report/report.h"
#include "stack/unwind_python.h"

struct sums {
  double live_blocks, live_bytes, blocks, bytes;
};

static void add_site(struct sums *sums, const struct profile_site *site) {
  double blocks = real_of_bits(load_relaxed(&site->allocated.blocks));
  double bytes = real_of_bits(load_relaxed(&site->allocated.bytes));
  sums->blocks += blocks;
  sums->bytes += bytes;
  sums->live_blocks += blocks - real_of_bits(load_relaxed(&site->freed.blocks));
  sums->live_bytes += bytes - real_of_bits(load_relaxed(&site->freed.bytes));
}

/* Rounded; one that is being counted may be below 0. */
static size_t whole(double real) { return real > 0 ? (size_t)(real + 0.5) : 0; }

static void write_sums(struct text *text, const struct sums *sums) {
  text_format(text, "  t*: %zu: %zu [%zu: %zu]\n", whole(sums->live_blocks),
              whole(sums->live_bytes), whole(sums->blocks), whole(sums->bytes));
}

static void write_profile(struct text *text) {
  struct sums all = {0};
  const struct profile_site *site;
  uint64_t count = load_relaxed(&profile_state.site_count);
  for (uint32_t number = 0; number < count; number++)
    if ((site = sites_record(number))) add_site(&all, site);
  text_string(text, "heap_v2/1\n");
  write_sums(text, &all);
  for (uint32_t number = 0; number < count; number++) {
    struct sums sums = {0};
    /* acquire: the frames; pairs with `make` of profile/sites.c. */
    unsigned frames = (site = sites_record(number)) ? load_acquire(&site->frame_count) : 0;
    if (!frames) continue;
    add_site(&sums, site);
    text_char(text, '@');
    /* Without those of Python after them: jeprof names addresses. */
    for (unsigned at = 0; at < frames && !(site->frames[at] & PYTHON_WORD); at++)
      text_format(text, " %#zx", (size_t)site->frames[at]);
    text_char(text, '\n');
    write_sums(text, &sums);
  }
  text_string(text, "\nMAPPED_LIBRARIES:\n");
}

enum { PREFIX_BYTES = 512 };
RARE_DATA static char given_prefix[PREFIX_BYTES];
RARE_DATA static ATOMIC(uint32_t) dumps;

int set_prefix(const char *prefix) {
  struct text text;
  if (!prefix) return EINVAL;
  text_init(&text, given_prefix, PREFIX_BYTES - 1);
  text_string(&text, prefix);
  given_prefix[text.length_bytes] = 0;
  return text.length_bytes == text.wanted_bytes ? 0 : EFAULT;
}

static int create(const char *path) {
  char name[PREFIX_BYTES + 64];
  if (path) return os_create_file(path);
  struct text text;
  unsigned number = fetch_add_relaxed(&dumps, 1);
  text_init(&text, name, sizeof name - 1);
  text_string(&text, *given_prefix ? given_prefix : option_text("prof_prefix"));
  text_format(&text, ".%u.%u.m%u.heap", os_process_id(), number, number);
  name[text.length_bytes] = 0;
  return text.length_bytes == text.wanted_bytes ? os_create_file(name) : -1;
}

int profile_dump(const char *path) {
  int descriptor = create(path);
  if (descriptor < 0) return EFAULT;
  report_to_descriptor(write_profile, descriptor);
  bool is_whole = os_copy_file("/proc/self/maps", descriptor); /* the last, where a disk is full */
  os_close(descriptor);
  return is_whole ? 0 : EFAULT;
}
