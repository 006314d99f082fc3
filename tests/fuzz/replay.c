/* Runs a fuzz target without libFuzzer:
 *   replay N FOLDER   every file of the folder, each in a process of its own, and N inputs made
 *                     from the numbers 1 … N, some to a process
 * Says how many there were.  Which input ended its process is said too. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "fuzz.h"

enum {
  INPUT_MAX_BYTES = 1 << 16,
  MADE_MIN_BYTES = 50,
  MADE_MAX_BYTES = 3000,
  MADE_PER_PROCESS = 25
};

static uint8_t bytes[INPUT_MAX_BYTES];

static size_t make_input(uint64_t number) {
  uint64_t random = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
  size_t size = MADE_MIN_BYTES + (size_t)(random_next(&random) >> 11) % MADE_MAX_BYTES;
  for (size_t at = 0; at < size; at++) bytes[at] = (uint8_t)(random_next(&random) >> 40);
  return size;
}

static size_t read_input(const char *path) {
  int descriptor = open(path, O_RDONLY);
  REQUIRE(descriptor >= 0);
  ssize_t size = read(descriptor, bytes, sizeof bytes);
  REQUIRE(size >= 0);
  close(descriptor);
  return (size_t)size;
}

static void run_file(const char *path) { LLVMFuzzerTestOneInput(bytes, read_input(path)); }

static void run_made(uint64_t first, uint64_t last) {
  for (uint64_t number = first; number <= last; number++) {
    printf("input made from %llu\n", (unsigned long long)number); /* shown only if it is the last */
    LLVMFuzzerTestOneInput(bytes, make_input(number));
  }
}

/* Runs one of the two in a child; its output is shown when it fails. */
static bool succeeds(const char *path, uint64_t first, uint64_t last) {
  int ends[2], status;
  char said[1 << 14];
  size_t length = 0;
  ssize_t more;
  REQUIRE(pipe(ends) == 0);
  fflush(stdout);
  pid_t id = fork();
  REQUIRE(id >= 0);
  if (id == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    setvbuf(stdout, NULL, _IOLBF, 0);
    close(ends[0]);
    close(ends[1]);
    if (path)
      run_file(path);
    else
      run_made(first, last);
    fflush(stdout);
    _exit(0);
  }
  close(ends[1]);
  while ((more = read(ends[0], said + length, sizeof said - length)) > 0) {
    length += (size_t)more;
    if (length <= sizeof said / 2) continue;
    memmove(said, said + length - sizeof said / 4, sizeof said / 4); /* the end is what tells */
    length = sizeof said / 4;
  }
  close(ends[0]);
  REQUIRE(waitpid(id, &status, 0) == id);
  if (status == 0) return true;
  printf("%s, status %#x: %.*s\n", path ? path : "made inputs", (unsigned)status, (int)length,
         said);
  return false;
}

int main(int argc, char **argv) {
  REQUIRE(argc == 3);
  uint64_t made = strtoull(argv[1], NULL, 10), count = made;
  bool is_well = true;
  for (uint64_t first = 1; first <= made; first += MADE_PER_PROCESS) {
    uint64_t last = first + MADE_PER_PROCESS - 1;
    is_well = succeeds(NULL, first, last < made ? last : made) && is_well;
  }
  DIR *folder = opendir(argv[2]);
  REQUIRE(folder);
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[PATH_MAX];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", argv[2], entry->d_name);
    is_well = succeeds(path, 0, 0) && is_well;
    count++;
  }
  closedir(folder);
  printf("tally: %llu sequences\n", (unsigned long long)count);
  return !is_well;
}
