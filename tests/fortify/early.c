/* A library that calls what is replaced before it can be: from the resolver of an indirect
 * function, which runs while the program is still being put together, and from a constructor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static char text[64];
static int is_right;

static int answer(void) { return is_right; }

static int (*resolve(void))(void) {
  volatile size_t length = 5;
  memcpy(text, "resolved", length);
  memset(text + length, 0, sizeof text - length);
  char moved[8];
  memmove(moved, text, 6);
  is_right = strlen(text) == 5 && !memcmp(moved, "resol", 6) && memchr(text, 'l', 5) == text + 4;
  strcat(strcpy(moved, "ab"), "cd");
  is_right = is_right && wcslen(L"abc") == 3 && strnlen(moved, 3) == 3;
  return answer;
}
int early_answer(void) __attribute__((ifunc("resolve")));
int early_constructed(void);

static char *block;
__attribute__((constructor)) static void construct(void) {
  block = strdup("constructed");
  snprintf(block, 12, "%s", "CONSTRUCTED");
}
int early_constructed(void) { return block && !strcmp(block, "CONSTRUCTED"); }
