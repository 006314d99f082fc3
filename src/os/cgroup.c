/* cgroup.c: the limits of the process's cgroups, from files of the kernel.
 *
 *   /proc/self/cgroup      0::/path                one line for v2,
 *                          4:memory:/path          one for each hierarchy of v1
 *   /sys/fs/cgroup         where they are mounted; below it the path, and every directory above
 *                          may limit too
 *
 * In a container the path may be the host's, while only the container's own part of the tree is
 * mounted: then the path does not exist here, and the mounted directory itself counts. Climbing
 * from the path to the mounted directory, skipping missing directories, finds it in both cases. */
#include "base/scan.h"
#include "base/text.h"
#include "os/os.h"

enum { FILE_BYTES = 4096 };

/* Used by one thread at a time: while the library starts, or in a round of purging. */
RARE_DATA static char file[FILE_BYTES], list[FILE_BYTES];

/* In v1 a value this large means "no limit". */
#define V1_NO_LIMIT (UINT64_C(1) << 62)

/* ---- files of numbers ------------------------------------------------------------------------ */

/* The number at the start; OS_CGROUP_NONE for anything else ("max", "-1", ""). */
static uint64_t number_at(const char *text) {
  uint64_t value;
  bool is_number = scan_is_digit(*text) && scan_number(&text, &value);
  return is_number && value < V1_NO_LIMIT ? value : OS_CGROUP_NONE;
}

/* Reads the file into `file`. */
static const char *read_in(const char *directory, const char *name) {
  char path[OS_CGROUP_PATH_BYTES + 64];
  struct text text;
  text_init(&text, path, sizeof path - 1);
  text_string(&text, directory);
  text_char(&text, '/');
  text_string(&text, name);
  path[text.length_bytes] = 0;
  os_read_file(path, file, sizeof file);
  return file;
}

/* The number after `key` at the start of a line of memory.stat; 0 when there is none. */
static uint64_t figure_of(const char *text, const char *key) {
  const char *rest = scan_line(text, key);
  uint64_t value = rest ? number_at(rest) : OS_CGROUP_NONE;
  return value == OS_CGROUP_NONE ? 0 : value;
}

/* ---- one directory --------------------------------------------------------------------------- */

/* The limit that is reached first. */
static void note_memory(struct os_cgroup *cgroup, const char *directory, const char *name,
                        bool is_v1) {
  uint64_t found = number_at(read_in(directory, name));
  if (found >= cgroup->memory_bytes) return;
  cgroup->memory_bytes = found;
  struct text path;
  text_init(&path, cgroup->memory_path, sizeof cgroup->memory_path - 1);
  text_string(&path, directory);
  cgroup->memory_path[path.length_bytes] = 0;
  cgroup->is_v1 = is_v1;
}

/* `quota` out of `period` microseconds. */
static void note_quota(struct os_cgroup *cgroup, uint64_t quota, uint64_t period) {
  if (quota == OS_CGROUP_NONE || period == OS_CGROUP_NONE || !period) return;
  if (quota > UINT64_MAX / OS_CGROUP_PROCESSOR) return;
  quota = quota * OS_CGROUP_PROCESSOR / period;
  if (quota < cgroup->processor_quota) cgroup->processor_quota = quota;
}

enum { V2_FILES = 1, V1_MEMORY_FILES = 2, V1_PROCESSOR_FILES = 4 };

static void read_directory(struct os_cgroup *cgroup, const char *directory, unsigned files) {
  if (files & V2_FILES) {
    note_memory(cgroup, directory, "memory.max", false);
    note_memory(cgroup, directory, "memory.high", false);
    const char *text = read_in(directory, "cpu.max"), *period = scan_for(text, ' ');
    if (period) note_quota(cgroup, number_at(text), number_at(period + 1));
  }
  if (files & V1_MEMORY_FILES) note_memory(cgroup, directory, "memory.limit_in_bytes", true);
  if (files & V1_PROCESSOR_FILES) {
    uint64_t quota = number_at(read_in(directory, "cpu.cfs_quota_us"));
    note_quota(cgroup, quota, number_at(read_in(directory, "cpu.cfs_period_us")));
  }
}

/* ---- up the tree ----------------------------------------------------------------------------- */

static const char mounts[] = "/sys/fs/cgroup";

/* True when the process is outside the mounted tree. */
static bool leads_outside(const char *path) {
  for (; (path = scan_for(path, '/')); path++)
    if (scan_past(path, "/..")) return true;
  return false;
}

/* Reads mounts/hierarchy/path and every directory above it, down to mounts/hierarchy. */
static void climb(struct os_cgroup *cgroup, const char *hierarchy, const char *path,
                  unsigned files) {
  char directory[OS_CGROUP_PATH_BYTES];
  struct text text;
  text_init(&text, directory, sizeof directory - 1);
  text_string(&text, mounts);
  text_string(&text, *hierarchy ? "/" : "");
  text_string(&text, hierarchy);
  size_t root_bytes = text.length_bytes;
  if (!leads_outside(path) && !scan_equals(path, "/")) text_string(&text, path);
  if (text.wanted_bytes != text.length_bytes) return;
  directory[text.length_bytes] = 0;
  for (;;) {
    read_directory(cgroup, directory, files);
    const char *last = scan_for_last(directory + root_bytes, '/');
    if (!last) return;
    directory[last - directory] = 0;
  }
}

static bool lists(const char *controllers, const char *wanted) {
  for (const char *at = controllers; at; at = scan_for(at, ',')) {
    if (*at == ',') at++;
    const char *rest = scan_past(at, wanted);
    if (rest && (*rest == ',' || !*rest)) return true;
  }
  return false;
}

/* A v1 hierarchy is mounted under its controllers' names, or has links with those names. */
static void climb_v1(struct os_cgroup *cgroup, const char *controllers, const char *wanted,
                     const char *path, unsigned files) {
  if (!lists(controllers, wanted)) return;
  climb(cgroup, wanted, path, files);
  if (!scan_equals(controllers, wanted)) climb(cgroup, controllers, path, files);
}

/* number:controllers:path, cut at its colons. Without controllers it is v2's, and the last one:
 * beside others v2 is mounted as "unified". */
static void read_line(struct os_cgroup *cgroup, char *line) {
  const char *controllers = scan_for(line, ':');
  const char *path = controllers ? scan_for(controllers + 1, ':') : NULL;
  if (!path) return;
  controllers++;
  line[path++ - line] = 0;
  climb_v1(cgroup, controllers, "memory", path, V1_MEMORY_FILES);
  climb_v1(cgroup, controllers, "cpu", path, V1_PROCESSOR_FILES);
  if (*controllers) return;
  climb(cgroup, "", path, V2_FILES);
  if (line != list) climb(cgroup, "unified", path, V2_FILES);
}

const struct os_cgroup *os_cgroup_read(void) {
  RARE_DATA static struct os_cgroup cgroup;
  cgroup = (struct os_cgroup){.memory_bytes = OS_CGROUP_NONE, .processor_quota = OS_CGROUP_NONE};
  os_read_file("/proc/self/cgroup", list, sizeof list);
  char *line = list;
  for (const char *end; (end = scan_for(line, '\n'));) {
    line[end - line] = 0;
    read_line(&cgroup, line);
    line += end - line + 1;
  }
  return &cgroup;
}

uint64_t os_memory_bytes(void) {
  os_read_file("/proc/meminfo", file, sizeof file);
  const char *kibibytes = scan_past(file, "MemTotal:");
  while (kibibytes && *kibibytes == ' ') kibibytes++;
  uint64_t count = kibibytes ? number_at(kibibytes) : OS_CGROUP_NONE;
  return count < OS_CGROUP_NONE >> 10 ? count << 10 : OS_CGROUP_NONE;
}

/* Subtracts the page cache, which the kernel drops before it refuses memory: a cgroup that reads
 * many files is always full of it. */
uint64_t os_cgroup_used_bytes(const struct os_cgroup *cgroup, uint64_t calm_bytes) {
  const char *directory = cgroup->memory_path;
  const char *usage = cgroup->is_v1 ? "memory.usage_in_bytes" : "memory.current";
  uint64_t used = number_at(read_in(directory, usage));
  if (used == OS_CGROUP_NONE) return 0;
  if (used <= calm_bytes) return used;
  const char *stat = read_in(directory, "memory.stat");
  uint64_t files =
      cgroup->is_v1
          ? figure_of(stat, "total_inactive_file ") + figure_of(stat, "total_active_file ")
          : figure_of(stat, "inactive_file ") + figure_of(stat, "active_file ");
  return used > files ? used - files : 0;
}
