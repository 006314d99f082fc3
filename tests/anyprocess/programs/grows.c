/* grows COUNT: keeps that many blocks of 600 bytes of text a second, and frees as many others. At
 * the end of its input it prints by how many milliseconds it was late at most. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

char *volatile kept[1 << 20]; /* the compiler leaves it out if nothing can read it */

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static char *text_of(size_t bytes) {
  char *text = malloc(bytes);
  if (!text) abort();
  for (size_t at = 0; at + 1 < bytes; ++at) text[at] = "an order of the shop "[at % 21];
  text[bytes - 1] = 0;
  return text;
}

int main(int argc, char **argv) {
  double a_second = argc == 2 ? atof(argv[1]) : 100, began_s = now_s();
  static char *passing[1000];
  size_t count = 0, passed = 0;
  for (size_t i = 0; i < 5000; ++i) kept[count++] = text_of(600);
  for (size_t i = 0; i < 1000; ++i) passing[i] = text_of(300);
  puts("ready");
  fflush(stdout);
  double looked_s = now_s(), late_s = 0;
  for (struct pollfd input = {.fd = 0, .events = POLLIN}; poll(&input, 1, 1) == 0;) {
    double now = now_s();
    if (now - looked_s > late_s) late_s = now - looked_s;
    looked_s = now;
    while ((double)(count - 5000) < (now - began_s) * a_second) {
      kept[count++] = text_of(600);
      free(passing[passed % 1000]);
      passing[passed++ % 1000] = text_of(300);
    }
  }
  printf("%.0f\n", late_s * 1000);
}
