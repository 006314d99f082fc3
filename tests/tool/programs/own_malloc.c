/* A program with a malloc of its own, as some bundle one. */
#include <stddef.h>
#include <unistd.h>

static char memory[1 << 20];
static size_t used;

void *malloc(size_t bytes) { return memory + (used += (bytes + 15) & ~(size_t)15); }
void *mi_malloc(size_t bytes) { return malloc(bytes); }
void free(void *block) { (void)block; }

int main(void) {
  free(malloc(1));
  pause();
  return 0;
}
