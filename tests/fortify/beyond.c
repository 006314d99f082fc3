/* beyond NAME EXTRA: a function of the C library is given a block of 40 bytes, all of it and EXTRA
 * bytes (or characters) more.  `beyond all 0` gives them all what is right; `beyond loose 0` names
 * more than there is where C allows it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wchar.h>

#include "misuse/hide.h"

enum { BYTES = 40, WIDE = BYTES / sizeof(wchar_t) };

#define WEAK __attribute__((weak))
extern size_t strlcpy(char *, const char *, size_t) WEAK; /* not in every glibc */
extern size_t strlcat(char *, const char *, size_t) WEAK;
extern size_t wcslcpy(wchar_t *, const wchar_t *, size_t) WEAK;
extern size_t wcslcat(wchar_t *, const wchar_t *, size_t) WEAK;

/* What programs call that are compiled with _FORTIFY_SOURCE. */
void *__memcpy_chk(void *, const void *, size_t, size_t);
void *__memmove_chk(void *, const void *, size_t, size_t);
void *__mempcpy_chk(void *, const void *, size_t, size_t);
void *__memset_chk(void *, int, size_t, size_t);
void __explicit_bzero_chk(void *, size_t, size_t);
char *__strcpy_chk(char *, const char *, size_t);
char *__stpcpy_chk(char *, const char *, size_t);
char *__strncpy_chk(char *, const char *, size_t, size_t);
char *__stpncpy_chk(char *, const char *, size_t, size_t);
char *__strcat_chk(char *, const char *, size_t);
char *__strncat_chk(char *, const char *, size_t, size_t);
wchar_t *__wmemcpy_chk(wchar_t *, const wchar_t *, size_t, size_t);
wchar_t *__wmemset_chk(wchar_t *, wchar_t, size_t, size_t);
wchar_t *__wcscpy_chk(wchar_t *, const wchar_t *, size_t);
wchar_t *__wcsncpy_chk(wchar_t *, const wchar_t *, size_t, size_t);
wchar_t *__wcscat_chk(wchar_t *, const wchar_t *, size_t);
int __sprintf_chk(char *, int, size_t, const char *, ...);
int __snprintf_chk(char *, size_t, int, size_t, const char *, ...);
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __readlink_chk(const char *, char *, size_t, size_t);
char *__getcwd_chk(char *, size_t, size_t);
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
char *__fgets_chk(char *, size_t, int, FILE *);

static const char words[] = "the quick brown fox jumps over the lazy dog, and once more the same";
static char room[4096];
static wchar_t wide_words[sizeof words], wide_room[1024];
static volatile size_t kept; /* or the compiler leaves the call out */
static int zeroes, nowhere, ends[2];
static FILE *lines, *sink;

static int print_list(char *target, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsprintf(target, format, arguments);
  va_end(arguments);
  return length;
}
static int print_list_within(char *target, size_t most, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(target, most, format, arguments);
  va_end(arguments);
  return length;
}

/* What a case works on: a block of BYTES full of x, with or without an end; a text that needs BYTES
 * + e with its end. */
struct given {
  size_t e;
  char *b;
  const char *t;
  wchar_t *w;
  const wchar_t *wt;
};

static struct given prepare(size_t e) {
  struct given given = {.e = e, .b = hide(malloc(BYTES))};
  for (size_t at = 0; at < BYTES; at++) given.b[at] = 'x';
  given.w = hide(malloc(BYTES));
  for (size_t at = 0; at < WIDE; at++) given.w[at] = L'x';
  if (!e) given.b[BYTES - 1] = 0, given.w[WIDE - 1] = 0;
  given.t = words + sizeof words - BYTES - e;
  given.wt = wide_words + sizeof words - WIDE - e;
  return given;
}
static char *full(struct given *g) { return g->b[BYTES - 1] = 'x', g->b; }
static char *begun(struct given *g) { return g->b[3] = 0, g->b; }
static wchar_t *begun_wide(struct given *g) { return g->w[3] = 0, g->w; }
static char equal_to_full[BYTES + 1] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

#define CASES                                                                          \
  CASE("memcpy", memcpy(g->b, words, BYTES + g->e))                                    \
  CASE("memcpy inside", memcpy(g->b + 13, words, BYTES - 13 + g->e))                   \
  CASE("memcpy source", memcpy(room, g->b, BYTES + g->e))                              \
  CASE("memmove", memmove(g->b, words, BYTES + g->e))                                  \
  CASE("memmove source", memmove(room, g->b, BYTES + g->e))                            \
  CASE("mempcpy", mempcpy(g->b, words, BYTES + g->e))                                  \
  CASE("bcopy", bcopy(words, g->b, BYTES + g->e))                                      \
  CASE("memccpy", memccpy(g->b, g->t, 0, 1000))                                        \
  CASE("memccpy source", memccpy(room, full(g), 'y', BYTES + g->e))                    \
  CASE("memset", memset(g->b, 1, BYTES + g->e))                                        \
  CASE("bzero", bzero(g->b, BYTES + g->e))                                             \
  CASE("explicit_bzero", explicit_bzero(g->b, BYTES + g->e))                           \
  CASE("memchr", kept = (size_t)memchr(full(g), 'y', BYTES + g->e))                    \
  CASE("memcmp", kept = (size_t)memcmp(full(g), equal_to_full, BYTES + g->e))          \
  CASE("memcmp other", kept = (size_t)memcmp(equal_to_full, full(g), BYTES + g->e))    \
  CASE("bcmp", kept = (size_t)bcmp(full(g), equal_to_full, BYTES + g->e))              \
  CASE("strlen", kept = (size_t)strlen(g->b))                                          \
  CASE("strnlen", kept = (size_t)strnlen(full(g), BYTES + g->e))                       \
  CASE("strcpy", strcpy(g->b, g->t))                                                   \
  CASE("strcpy source", strcpy(room, g->b))                                            \
  CASE("stpcpy", stpcpy(g->b, g->t))                                                   \
  CASE("strncpy", strncpy(g->b, "abc", BYTES + g->e))                                  \
  CASE("strncpy source", strncpy(room, full(g), BYTES + g->e))                         \
  CASE("stpncpy", stpncpy(g->b, "abc", BYTES + g->e))                                  \
  CASE("strcat", strcat(begun(g), g->t + 3))                                           \
  CASE("strcat source", (room[0] = 0, strcat(room, g->b)))                             \
  CASE("strncat", strncat(begun(g), g->t + 3, 1000))                                   \
  CASE("strlcpy", strlcpy ? strlcpy(g->b, g->t, 1000) : 0)                             \
  CASE("strlcat", strlcat ? strlcat(begun(g), g->t + 3, 1000) : 0)                     \
  CASE("strdup", free(strdup(g->b)))                                                   \
  CASE("strndup", free(strndup(full(g), BYTES + g->e)))                                \
  CASE("wmemcpy", wmemcpy(g->w, wide_words, WIDE + g->e))                              \
  CASE("wmemcpy source", wmemcpy(wide_room, g->w, WIDE + g->e))                        \
  CASE("wmemmove", wmemmove(g->w, wide_words, WIDE + g->e))                            \
  CASE("wmempcpy", wmempcpy(g->w, wide_words, WIDE + g->e))                            \
  CASE("wmemset", wmemset(g->w, 1, WIDE + g->e))                                       \
  CASE("wcslen", kept = (size_t)wcslen(g->w))                                          \
  CASE("wcscpy", wcscpy(g->w, g->wt))                                                  \
  CASE("wcscpy source", wcscpy(wide_room, g->w))                                       \
  CASE("wcpcpy", wcpcpy(g->w, g->wt))                                                  \
  CASE("wcsncpy", wcsncpy(g->w, L"abc", WIDE + g->e))                                  \
  CASE("wcpncpy", wcpncpy(g->w, L"abc", WIDE + g->e))                                  \
  CASE("wcscat", wcscat(begun_wide(g), g->wt + 3))                                     \
  CASE("wcsncat", wcsncat(begun_wide(g), g->wt + 3, 1000))                             \
  CASE("wcslcpy", wcslcpy ? wcslcpy(g->w, g->wt, 1000) : 0)                            \
  CASE("wcslcat", wcslcat ? wcslcat(begun_wide(g), g->wt + 3, 1000) : 0)               \
  CASE("wcsdup", free(wcsdup(g->w)))                                                   \
  CASE("sprintf", sprintf(g->b, "%s", g->t))                                           \
  CASE("snprintf", snprintf(g->b, 1000, "%s", g->t))                                   \
  CASE("vsprintf", print_list(g->b, "%s", g->t))                                       \
  CASE("vsnprintf", print_list_within(g->b, 1000, "%s", g->t))                         \
  CASE("read", read(zeroes, g->b, BYTES + g->e))                                       \
  CASE("pread", pread(zeroes, g->b, BYTES + g->e, 0))                                  \
  CASE("pread64", pread64(zeroes, g->b, BYTES + g->e, 0))                              \
  CASE("recv", recv(ends[0], g->b, BYTES + g->e, MSG_DONTWAIT))                        \
  CASE("recvfrom", recvfrom(ends[0], g->b, BYTES + g->e, MSG_DONTWAIT, NULL, NULL))    \
  CASE("readlink", readlink("/proc/self/exe", g->b, BYTES + g->e))                     \
  CASE("readlinkat", readlinkat(AT_FDCWD, "/proc/self/exe", g->b, BYTES + g->e))       \
  CASE("getcwd", getcwd(g->b, BYTES + g->e))                                           \
  CASE("fread", fread(g->b, 1, BYTES + g->e, lines))                                   \
  CASE("fread_unlocked", fread_unlocked(g->b, BYTES + g->e, 1, lines))                 \
  CASE("fgets", fgets(g->b, (int)(BYTES + g->e), lines))                               \
  CASE("fgets_unlocked", fgets_unlocked(g->b, (int)(BYTES + g->e), lines))             \
  CASE("write", write(nowhere, g->b, BYTES + g->e))                                    \
  CASE("pwrite", pwrite(nowhere, g->b, BYTES + g->e, 0))                               \
  CASE("pwrite64", pwrite64(nowhere, g->b, BYTES + g->e, 0))                           \
  CASE("send", send(ends[1], g->b, BYTES + g->e, MSG_DONTWAIT))                        \
  CASE("sendto", sendto(ends[1], g->b, BYTES + g->e, MSG_DONTWAIT, NULL, 0))           \
  CASE("fwrite", fwrite(g->b, 1, BYTES + g->e, sink))                                  \
  CASE("fwrite_unlocked", fwrite_unlocked(g->b, 1, BYTES + g->e, sink))                \
  CASE("memcpy chk", __memcpy_chk(g->b, words, BYTES + g->e, SIZE_MAX))                \
  CASE("memmove chk", __memmove_chk(g->b, words, BYTES + g->e, SIZE_MAX))              \
  CASE("mempcpy chk", __mempcpy_chk(g->b, words, BYTES + g->e, SIZE_MAX))              \
  CASE("memset chk", __memset_chk(g->b, 1, BYTES + g->e, SIZE_MAX))                    \
  CASE("explicit_bzero chk", __explicit_bzero_chk(g->b, BYTES + g->e, SIZE_MAX))       \
  CASE("strcpy chk", __strcpy_chk(g->b, g->t, SIZE_MAX))                               \
  CASE("stpcpy chk", __stpcpy_chk(g->b, g->t, SIZE_MAX))                               \
  CASE("strncpy chk", __strncpy_chk(g->b, "abc", BYTES + g->e, SIZE_MAX))              \
  CASE("stpncpy chk", __stpncpy_chk(g->b, "abc", BYTES + g->e, SIZE_MAX))              \
  CASE("strcat chk", __strcat_chk(begun(g), g->t + 3, SIZE_MAX))                       \
  CASE("strncat chk", __strncat_chk(begun(g), g->t + 3, 1000, SIZE_MAX))               \
  CASE("wmemcpy chk", __wmemcpy_chk(g->w, wide_words, WIDE + g->e, SIZE_MAX))          \
  CASE("wmemset chk", __wmemset_chk(g->w, 1, WIDE + g->e, SIZE_MAX))                   \
  CASE("wcscpy chk", __wcscpy_chk(g->w, g->wt, SIZE_MAX))                              \
  CASE("wcsncpy chk", __wcsncpy_chk(g->w, L"abc", WIDE + g->e, SIZE_MAX))              \
  CASE("wcscat chk", __wcscat_chk(begun_wide(g), g->wt + 3, SIZE_MAX))                 \
  CASE("sprintf chk", __sprintf_chk(g->b, 1, SIZE_MAX, "%s", g->t))                    \
  CASE("snprintf chk", __snprintf_chk(g->b, 1000, 1, SIZE_MAX, "%s", g->t))            \
  CASE("read chk", __read_chk(zeroes, g->b, BYTES + g->e, SIZE_MAX))                   \
  CASE("pread chk", __pread_chk(zeroes, g->b, BYTES + g->e, 0, SIZE_MAX))              \
  CASE("recv chk", __recv_chk(ends[0], g->b, BYTES + g->e, SIZE_MAX, MSG_DONTWAIT))    \
  CASE("readlink chk", __readlink_chk("/proc/self/exe", g->b, BYTES + g->e, SIZE_MAX)) \
  CASE("getcwd chk", __getcwd_chk(g->b, BYTES + g->e, SIZE_MAX))                       \
  CASE("fread chk", __fread_chk(g->b, SIZE_MAX, 1, BYTES + g->e, lines))               \
  CASE("fgets chk", __fgets_chk(g->b, SIZE_MAX, (int)(BYTES + g->e), lines))

static void run(const char *name, size_t extra) {
  int has_run = 0, all = !strcmp(name, "all");
#define CASE(what, statement)                         \
  if (all || !strcmp(name, what)) {                   \
    struct given given = prepare(extra), *g = &given; \
    has_run = 1;                                      \
    (void)(statement);                                \
  }
  CASES
#undef CASE
  if (!has_run) abort();
}

static void check(int is_right, const char *what) {
  if (is_right) return;
  fprintf(stderr, "wrong: %s\n", what);
  _exit(1);
}

/* More is named than there is, and less is touched. */
static void run_loose(void) {
  struct given given = prepare(0), *g = &given;
  check(memchr(g->b, 0, 100000) == g->b + BYTES - 1, "memchr");
  check(strnlen(g->b, 100000) == BYTES - 1, "strnlen");
  check(memcmp(g->b, words, 100000) > 0, "memcmp");
  check(memccpy(g->b, "abc", 0, 100000) == g->b + 4, "memccpy");
  check(strncat(g->b, "def", 100000) == g->b && !strcmp(g->b, "abcdef"), "strncat");
  check(snprintf(g->b, 100000, "%s", "ghi") == 3 && !strcmp(g->b, "ghi"), "snprintf");
  check(snprintf(g->b, 2, "%s", words) == sizeof words - 1 && !strcmp(g->b, "t"), "snprintf cut");
  check(!strlcpy || (strlcpy(g->b, "jkl", 100000) == 3 && !strcmp(g->b, "jkl")), "strlcpy");
  check(!strlcat || (strlcat(g->b, "mno", 100000) == 6 && !strcmp(g->b, "jklmno")), "strlcat");
  check(memcpy(g->b + BYTES, words, 0) == g->b + BYTES, "nothing at the end");
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  for (size_t at = 0; at < sizeof words; at++) wide_words[at] = (wchar_t)words[at];
  zeroes = open("/dev/zero", O_RDONLY);
  nowhere = open("/dev/null", O_WRONLY);
  lines = fopen(arguments[0], "r");
  sink = fopen("/dev/null", "w");
  if (!lines || !sink || socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) return 2;
  if (!strcmp(arguments[1], "loose"))
    run_loose();
  else if (!strcmp(arguments[1], "freed")) {
    char *block = hide(malloc(BYTES));
    free(block);
    memcpy(hide(block + 4), words, 8);
  } else
    run(arguments[1], strtoul(arguments[2], NULL, 10));
  _exit(0);
}
