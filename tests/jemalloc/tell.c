/* Prints the value of the name given, by its type in jemalloc's manual. */
#include "jemalloc/mallctl.h"

#ifdef CONF
const char *malloc_conf = CONF;
#endif

#ifdef MESSAGE
static void message(void *unused, const char *text) {
  (void)unused;
  fputs(text, stdout);
  fflush(stdout);
}
void (*malloc_message)(void *argument, const char *text) = message;
#endif

/* Not linked with the library: preloaded. */
#pragma weak mallctl

int main(int argc, char **argv) {
  CHECK(argc == 2 && mallctl && malloc(1));
  union {
    bool flag;
    unsigned number;
    ssize_t size;
    const char *text;
  } value = {0};
  size_t bytes[] = {sizeof(bool), sizeof(unsigned), sizeof(size_t)};
  for (size_t at = 0; at < COUNT_OF(bytes); at++) {
    size_t room = bytes[at];
    if (mallctl(argv[1], &value, &room, NULL, 0)) continue;
    if (strstr(argv[1], "prefix"))
      puts(value.text);
    else
      printf("%zd\n", bytes[at] == 1   ? value.flag
                      : bytes[at] == 4 ? (ssize_t)value.number
                                       : value.size);
    return 0;
  }
  return 1;
}
