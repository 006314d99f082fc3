/* Maps memory right after its own data, as the kernel may place an arena after those of a
 * library. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, BYTES = 64 << 20 };
extern char end;

int main(void) {
  void *after = (void *)(((uintptr_t)&end + PAGE_BYTES - 1) & -(uintptr_t)PAGE_BYTES);
  if ((uintptr_t)sbrk(0) - (uintptr_t)after <= BYTES) /* the kernel would call it the heap */
    return execl("/proc/self/exe", "beside_data", NULL);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  if (mmap(after, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) != after) return 1;
  memset(after, 1, BYTES);
  return write(STDOUT_FILENO, "ready\n", 6) != 6 || pause();
}
