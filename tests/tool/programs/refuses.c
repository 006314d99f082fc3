/* refuses: a malloc that is preloaded and serves no request. */
#include <stddef.h>

void *malloc(size_t size) {
  (void)size;
  return NULL;
}
