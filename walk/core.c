/* A core as a target: segments by its program headers, files by its note NT_FILE. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target.h"

enum { MAPPINGS_MAX = 1 << 20, SMALLEST_PAGE = 4096 };

static bool is_inside(const struct target *target, uint64_t offset, uint64_t bytes) {
  return offset <= target->core_bytes && bytes <= target->core_bytes - offset;
}

static int by_begin(const void *left, const void *right) {
  uint64_t a = ((const struct segment *)left)->begin, b = ((const struct segment *)right)->begin;
  return (a > b) - (a < b);
}

static struct mapping *add_mapping(struct target *target) {
  if (target->mapping_count % 256 == 0)
    target->mappings =
        allocated(target->mappings, (target->mapping_count + 256) * sizeof *target->mappings);
  struct mapping *mapping = &target->mappings[target->mapping_count++];
  memset(mapping, 0, sizeof *mapping);
  mapping->path = "";
  return mapping;
}

/* The kernel's note has: count, page size, count times begin, end, offset in pages; then paths. */
static void name_files(struct target *target, const uint8_t *note, uint64_t bytes) {
  uint64_t head[2], row[3];
  if (bytes < sizeof head) return;
  memcpy(head, note, sizeof head);
  if (head[0] > MAPPINGS_MAX || head[0] * sizeof row > bytes - sizeof head) return;
  const char *path = (const char *)note + sizeof head + head[0] * sizeof row;
  const char *end = (const char *)note + bytes;
  for (uint64_t i = 0; i < head[0] && path < end; ++i) {
    const char *zero = memchr(path, 0, (size_t)(end - path));
    if (zero == NULL) return;
    memcpy(row, note + sizeof head + i * sizeof row, sizeof row);
    const struct mapping *first = mapping_of(target, row[0]);
    struct mapping *last = target->mappings + target->mapping_count;
    struct mapping *mapping = first ? target->mappings + (first - target->mappings) : last;
    for (; mapping < last && mapping->begin < row[1]; ++mapping) {
      mapping->path = path;
      mapping->is_anonymous = false;
    }
    path = zero + 1;
  }
}

static void read_notes(struct target *target, uint64_t offset, uint64_t bytes) {
  while (bytes >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr head;
    memcpy(&head, target->core + offset, sizeof head);
    uint64_t name = round_up(head.n_namesz, 4), content = round_up(head.n_descsz, 4);
    uint64_t whole = sizeof head + name + content;
    if (whole > bytes) return;
    const uint8_t *note = target->core + offset + sizeof head + name;
    if (head.n_type == NT_FILE) name_files(target, note, head.n_descsz);
    for (uint64_t at = 0; head.n_type == NT_AUXV && at + 16 <= head.n_descsz; at += 16) {
      uint64_t entry[2];
      memcpy(entry, note + at, sizeof entry);
      bool is_usual = entry[1] >= 4096 && entry[1] <= 65536 && !(entry[1] & (entry[1] - 1));
      if (entry[0] == AT_PAGESZ && is_usual) target->page_bytes = entry[1];
    }
    offset += whole;
    bytes -= whole;
  }
}

/* Only the part that the file has: of the rest nothing is known. */
static void add_segment(struct target *target, const Elf64_Phdr *header) {
  struct segment *segment = &target->segments[target->segment_count];
  uint64_t stored =
      header->p_offset < target->core_bytes ? target->core_bytes - header->p_offset : 0;
  if (header->p_filesz < stored) stored = header->p_filesz;
  if (header->p_memsz < stored) stored = header->p_memsz;
  if (stored == 0 || header->p_vaddr % SMALLEST_PAGE || header->p_vaddr > UINT64_MAX / 2) return;
  segment->begin = header->p_vaddr;
  segment->bytes = stored;
  segment->offset = header->p_offset;
  segment->flags = header->p_flags;
  ++target->segment_count;
}

/* Segments do not overlap; a damaged file's may. */
static void make_mappings(struct target *target) {
  size_t kept = 0;
  qsort(target->segments, target->segment_count, sizeof *target->segments, by_begin);
  for (size_t i = 0; i < target->segment_count; ++i) {
    struct segment *last = kept ? &target->segments[kept - 1] : NULL;
    if (last && target->segments[i].begin < last->begin + last->bytes) continue;
    target->segments[kept++] = target->segments[i];
  }
  target->segment_count = kept;
  for (size_t i = 0; i < kept; ++i) {
    struct mapping *mapping = add_mapping(target);
    mapping->begin = target->segments[i].begin;
    mapping->end = mapping->begin + target->segments[i].bytes;
    mapping->is_readable = mapping->is_private = mapping->is_anonymous = true;
    mapping->is_writable = target->segments[i].flags & PF_W;
    mapping->is_executable = target->segments[i].flags & PF_X;
  }
}

static void map_core(struct target *target) {
  int file = open(target->word, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) refuse("%s: %s", target->word, errno_name());
  off_t bytes = lseek(file, 0, SEEK_END);
  void *map = MAP_FAILED;
  if (bytes > 0) map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (map == MAP_FAILED) refuse("%s is not an ELF core", target->word);
  target->core = map;
  target->core_bytes = (uint64_t)bytes;
}

void core_open(struct target *target) {
  map_core(target);
  Elf64_Ehdr head;
  if (target->core_bytes < sizeof head) refuse("%s is not an ELF core", target->word);
  memcpy(&head, target->core, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) refuse("%s is not an ELF core", target->word);
  if (head.e_ident[EI_CLASS] != ELFCLASS64)
    refuse("%s is a 32-bit core: only 64-bit ones can be walked", target->word);
  if (head.e_type != ET_CORE || head.e_phentsize != sizeof(Elf64_Phdr))
    refuse("%s is not an ELF core", target->word);
  size_t count = head.e_phnum;
  if (count == PN_XNUM && is_inside(target, head.e_shoff, sizeof(Elf64_Shdr))) {
    Elf64_Shdr first; /* more than 65,534 segments: their number is in section 0 */
    memcpy(&first, target->core + head.e_shoff, sizeof first);
    count = first.sh_info;
  }
  if (!is_inside(target, head.e_phoff, count * sizeof(Elf64_Phdr)))
    refuse("%s is cut short: it has no program headers", target->word);
  Elf64_Phdr *headers = allocated(NULL, count * sizeof *headers);
  memcpy(headers, target->core + head.e_phoff, count * sizeof *headers);
  target->page_bytes = 4096;
  target->segments = allocated(NULL, count * sizeof *target->segments);
  for (size_t i = 0; i < count; ++i)
    if (headers[i].p_type == PT_LOAD) add_segment(target, &headers[i]);
  make_mappings(target);
  for (size_t i = 0; i < count; ++i)
    if (headers[i].p_type == PT_NOTE && is_inside(target, headers[i].p_offset, headers[i].p_filesz))
      read_notes(target, headers[i].p_offset, headers[i].p_filesz);
  free(headers);
}
