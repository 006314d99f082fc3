/* formats.c: sprintf and its kin.  The length is known only after writing: they get no more room
 * than the block has. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "fortify/check.h"
#include "fortify/real.h"

int __vsprintf_chk(char *target, int flag, size_t room, const char *format, va_list arguments);
int __vsnprintf_chk(char *target, size_t most, int flag, size_t room, const char *format,
                    va_list arguments);
int __sprintf_chk(char *target, int flag, size_t room, const char *format, ...);
int __snprintf_chk(char *target, size_t most, int flag, size_t room, const char *format, ...);

/* The arguments of a call. `most` and `room` are SIZE_MAX where not given, `flag` is -1 where the
 * plain function was called. */
struct call {
  const char *function;
  char *target;
  size_t most;
  int flag;
  size_t room;
  const char *format;
  uintptr_t caller;
};

/* Prints as the program asked. */
INLINE int print_as_asked(const struct call *call, va_list arguments) {
  if (call->flag < 0)
    return call->most == SIZE_MAX
               ? REAL(vsprintf)(call->target, call->format, arguments)
               : REAL(vsnprintf)(call->target, call->most, call->format, arguments);
  return call->most == SIZE_MAX
             ? REAL(__vsprintf_chk)(call->target, call->flag, call->room, call->format, arguments)
             : REAL(__vsnprintf_chk)(call->target, call->most, call->flag, call->room, call->format,
                                     arguments);
}

/* Prints within `left` bytes, fewer than the call allows. */
INLINE int print_within(const struct call *call, size_t left, va_list arguments) {
  if (call->flag < 0) return REAL(vsnprintf)(call->target, left, call->format, arguments);
  return REAL(__vsnprintf_chk)(call->target, left, call->flag, call->room, call->format, arguments);
}

static int print(const struct call *call, va_list arguments) {
  size_t left = bytes_left(call->target);
  if (LIKELY(left >= call->most || left >= call->room)) return print_as_asked(call, arguments);
  va_list again;
  va_copy(again, arguments);
  int length = print_within(call, left < INT_MAX ? left : INT_MAX, arguments);
  size_t written = length < 0 ? 0 : (size_t)length + 1;
  if (written > call->most) written = call->most;
  if (UNLIKELY(written > left)) {
    check_failed(call->function, call->target, written, true, call->caller);
    length = print_as_asked(call, again);
  }
  va_end(again);
  return length;
}

#define CALL(...) (&(struct call){__VA_ARGS__, CALLER_ADDRESS()})

EXPORT int vsprintf(char *restrict target, const char *restrict format, va_list arguments) {
  return print(CALL("vsprintf", target, SIZE_MAX, -1, SIZE_MAX, format), arguments);
}
EXPORT int vsnprintf(char *restrict target, size_t most, const char *restrict format,
                     va_list arguments) {
  return print(CALL("vsnprintf", target, most, -1, SIZE_MAX, format), arguments);
}
EXPORT int __vsprintf_chk(char *target, int flag, size_t room, const char *format,
                          va_list arguments) {
  return print(CALL("vsprintf", target, SIZE_MAX, flag, room, format), arguments);
}
EXPORT int __vsnprintf_chk(char *target, size_t most, int flag, size_t room, const char *format,
                           va_list arguments) {
  return print(CALL("vsnprintf", target, most, flag, room, format), arguments);
}

/* The result of print() with the arguments after `format`. */
#define PRINT(...)                                  \
  va_list arguments;                                \
  va_start(arguments, format);                      \
  int length = print(CALL(__VA_ARGS__), arguments); \
  va_end(arguments);                                \
  return length

EXPORT int sprintf(char *restrict target, const char *restrict format, ...) {
  PRINT("sprintf", target, SIZE_MAX, -1, SIZE_MAX, format);
}
EXPORT int snprintf(char *restrict target, size_t most, const char *restrict format, ...) {
  PRINT("snprintf", target, most, -1, SIZE_MAX, format);
}
EXPORT int __sprintf_chk(char *target, int flag, size_t room, const char *format, ...) {
  PRINT("sprintf", target, SIZE_MAX, flag, room, format);
}
EXPORT int __snprintf_chk(char *target, size_t most, int flag, size_t room, const char *format,
                          ...) {
  PRINT("snprintf", target, most, flag, room, format);
}
