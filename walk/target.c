/* Which target it is, and why it cannot be walked. */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FLAGS_FIELD = 9, KERNEL_THREAD = 0x200000 }; /* of /proc/PID/stat; PF_KTHREAD */

void refuse(const char *format, ...) {
  char sentence[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "hakmem-walk: %s\n", sentence);
  _exit(REFUSED);
}

void *allocated(void *old, size_t bytes) {
  void *block = realloc(old, bytes ? bytes : 1);
  if (block == NULL) refuse("no memory for %zu bytes", bytes);
  return block;
}

void *allocated_pages(size_t bytes) {
  void *block;
  if (posix_memalign(&block, 4096, bytes) != 0) refuse("no memory for %zu bytes", bytes);
  return block;
}

uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sleep_ms(unsigned ms) {
  struct timespec time = {0, (long)ms * 1000000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* strerror is in the user's language and not safe among threads. */
const char *errno_name(void) {
  static char other[24];
  if (errno == EPERM) return "EPERM";
  if (errno == EACCES) return "EACCES";
  if (errno == ENOENT) return "ENOENT";
  if (errno == ENOSPC) return "ENOSPC";
  snprintf(other, sizeof other, "error %d", errno);
  return other;
}

static int open_of(const struct target *target, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", target->pid, name);
  return open(path, O_RDONLY | O_CLOEXEC);
}

/* The whole file; its length in `bytes`. */
static char *content(int file, size_t *bytes) {
  size_t room = 1 << 16, used = 0;
  char *text = allocated(NULL, room);
  for (ssize_t got; (got = read(file, text + used, room - used - 1)) > 0;) {
    used += (size_t)got;
    if (room - used < 1 << 12) text = allocated(text, room *= 2);
  }
  text[used] = 0;
  *bytes = used;
  return text;
}

/* sscanf and strtoul have names in new C libraries that the oldest supported one lacks. */
static uint64_t number(const char **text, unsigned base) {
  uint64_t value = 0;
  for (;; ++*text) {
    unsigned digit = (unsigned)(**text - '0');
    if (digit > 9) digit = **text >= 'a' && **text <= 'f' ? (unsigned)(**text - 'a') + 10 : 99;
    if (digit >= base) return value;
    value = value * base + digit;
  }
}

/* begin-end rwxp offset major:minor inode   path */
static void parse_mapping(const char *line, struct mapping *mapping) {
  mapping->begin = number(&line, 16);
  if (*line) ++line;
  mapping->end = number(&line, 16);
  while (*line == ' ') ++line;
  if (strlen(line) < 5) return;
  mapping->is_readable = line[0] == 'r';
  mapping->is_writable = line[1] == 'w';
  mapping->is_executable = line[2] == 'x';
  mapping->is_private = line[3] == 'p';
  line += 5;
  line += strcspn(line, " "); /* the offset */
  while (*line == ' ') ++line;
  line += strcspn(line, " ");
  while (*line == ' ') ++line;
  uint64_t inode = number(&line, 10);
  line += strspn(line, " ");
  mapping->path = line;
  mapping->is_anonymous = inode == 0 && *line != '/';
}

void target_refresh(struct target *target) {
  if (!target->pid) return;
  int file = open_of(target, "maps");
  if (file < 0) refuse("process %d ended while it was read", target->pid);
  size_t bytes;
  char *text = content(file, &bytes);
  close(file);
  size_t lines = 0;
  for (const char *at = text; *at; ++at) lines += *at == '\n';
  struct mapping *mappings = allocated(NULL, lines * sizeof *mappings);
  memset(mappings, 0, lines * sizeof *mappings);
  size_t count = 0;
  for (char *line = text, *end; count < lines && (end = strchr(line, '\n')); line = end + 1) {
    *end = 0;
    mappings[count].path = "";
    parse_mapping(line, &mappings[count]);
    ++count;
  }
  free(target->mappings);
  free(target->text);
  target->text = text;
  target->mappings = mappings;
  target->mapping_count = count;
}

const struct mapping *mapping_of(const struct target *target, uint64_t address) {
  size_t low = first_beyond(target->mappings, target->mapping_count, sizeof *target->mappings,
                            offsetof(struct mapping, end), address);
  if (low == target->mapping_count || target->mappings[low].begin > address) return NULL;
  return &target->mappings[low];
}

int target_open_file(const struct target *target, const char *path) {
  if (!target->pid) return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  char inside[4200];
  snprintf(inside, sizeof inside, "/proc/%d/root%s", target->pid, path);
  return open(inside, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* A process without memory is a kernel thread, or has ended. */
static void refuse_without_memory(const struct target *target) {
  int file = open_of(target, "stat");
  if (file < 0) refuse("no process %d", target->pid);
  size_t bytes;
  const char *field = strrchr(content(file, &bytes), ')');
  uint64_t flags = 0;
  if (field && (field[2] == 'Z' || field[2] == 'X'))
    refuse("process %d has ended; its parent has not waited for it yet (a zombie)", target->pid);
  for (unsigned i = 2; field && i < FLAGS_FIELD; ++i) field = strchr(field + 1, ' ');
  if (field && *++field) flags = number(&field, 10);
  refuse(flags & KERNEL_THREAD ? "process %d is a kernel thread: it has no heap"
                               : "process %d is ending: it has no memory any more",
         target->pid);
}

static void check_rights(const struct target *target) {
  uint8_t byte;
  int file = open_of(target, "exe");
  if (file >= 0) {
    uint8_t head[5] = {0};
    ssize_t got = pread(file, head, sizeof head, 0);
    close(file);
    if (got == sizeof head && head[4] == 1)
      refuse("process %d is a 32-bit program: only 64-bit ones can be walked", target->pid);
  }
  for (size_t i = 0; i < target->mapping_count; ++i) {
    const struct mapping *mapping = &target->mappings[i];
    if (mapping->is_readable && memory_read(target, mapping->begin, &byte, 1) == 1) return;
  }
  refuse("process %d: its memory cannot be read", target->pid);
}

static void process_open(struct target *target) {
  int file = open_of(target, "maps");
  if (file < 0 && (errno == ENOENT || errno == ESRCH)) refuse("no process %d", target->pid);
  uint8_t first;
  ssize_t got = file < 0 ? -1 : read(file, &first, 1);
  if (got < 0 && (errno == EPERM || errno == EACCES))
    refuse("process %d: no right to read it (%s); run as its user, or as root", target->pid,
           errno_name());
  if (got < 0 && errno != ESRCH) refuse("process %d: %s", target->pid, errno_name());
  if (got <= 0) refuse_without_memory(target);
  close(file);
  target->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
  target->pagemap = open_of(target, "pagemap");
  target_refresh(target);
  check_rights(target);
}

void target_open(struct target *target, const char *word) {
  memset(target, 0, sizeof *target);
  target->word = word;
  target->pagemap = -1;
  size_t length = strlen(word);
  if (length > 0 && strspn(word, "0123456789") == length) {
    const char *digits = word;
    uint64_t pid = length < 12 ? number(&digits, 10) : 0;
    if (pid == 0 || pid > INT32_MAX) refuse("no process %s", word);
    target->pid = (int)pid;
    process_open(target);
  } else {
    core_open(target);
  }
}
