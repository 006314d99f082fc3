/* os_linux_elf.c: the dynamic symbols of a module in memory, by its program headers. */
#include <elf.h>
#include <link.h>

#include "os/os_linux.h"

bool os_is_named(const struct os_symbols *symbols, size_t index, const char *name) {
  const char *other = symbols->names + ((const ElfW(Sym) *)symbols->table)[index].st_name;
  while (*name && *name == *other) name++, other++;
  return *name == *other;
}

/* A hash table of GNU's: four words, a Bloom filter, a first symbol for each bucket, and for each
 * symbol from the first hashed one on a word whose lowest bit ends a bucket. It alone says how many
 * symbols there are. */
struct gnu_hash {
  uint32_t bucket_count, first_hashed, filter_words, filter_shift;
  ElfW(Addr) filter[];
};

static size_t count_hashed(const struct gnu_hash *hash) {
  const uint32_t *buckets = (const void *)(hash->filter + hash->filter_words);
  const uint32_t *chains = buckets + hash->bucket_count;
  uint32_t last = 0;
  for (uint32_t bucket = 0; bucket < hash->bucket_count; bucket++)
    if (buckets[bucket] > last) last = buckets[bucket];
  if (last < hash->first_hashed) return hash->first_hashed;
  while (!(chains[last - hash->first_hashed] & 1)) last++;
  return (size_t)last + 1;
}

static const ElfW(Dyn) * find_dynamic(const ElfW(Phdr) * headers, size_t count, uintptr_t bias) {
  for (size_t index = 0; index < count; index++)
    if (headers[index].p_type == PT_DYNAMIC) return (const void *)(bias + headers[index].p_vaddr);
  return NULL;
}

bool os_read_symbols(const void *headers, size_t header_count, uintptr_t bias, bool is_placed,
                     struct os_symbols *symbols) {
  enum { HASH_COUNT_WORD = 1 };
  uintptr_t base = is_placed ? 0 : bias;
  *symbols = (struct os_symbols){.bias = bias};
  const ElfW(Dyn) *entry = find_dynamic(headers, header_count, bias);
  for (; entry && entry->d_tag != DT_NULL; entry++) {
    const void *place = (const void *)(base + entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) symbols->table = place;
    if (entry->d_tag == DT_STRTAB) symbols->names = place;
    if (entry->d_tag == DT_HASH) symbols->count = ((const uint32_t *)place)[HASH_COUNT_WORD];
    if (entry->d_tag == DT_GNU_HASH && !symbols->count) symbols->count = count_hashed(place);
  }
  return symbols->table && symbols->names && symbols->count;
}
