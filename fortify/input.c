/* input.c: reads into a block. The size argument must fit, even if fewer bytes arrive. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fortify/check.h"
#include "fortify/real.h"

#undef fread_unlocked /* a macro, too */

/* Reads `bytes` at most into `target`; the arguments after the lists of parameters are passed
 * on. */
#define INPUT(result, failure, name, bytes, parameters, parameters_chk, ...) \
  WITH_ROOM_IN(result, name, __##name##_chk, parameters, parameters_chk,     \
               (check_room(bytes, room), check_write(#name, target, bytes),  \
                FORWARD(failure, name, __VA_ARGS__)))

INPUT(ssize_t, -1, read, bytes, (int descriptor, void *target, size_t bytes),
      (int descriptor, void *target, size_t bytes, size_t room), descriptor, target, bytes)
INPUT(ssize_t, -1, pread, bytes, (int descriptor, void *target, size_t bytes, off_t offset),
      (int descriptor, void *target, size_t bytes, off_t offset, size_t room), descriptor, target,
      bytes, offset)
INPUT(ssize_t, -1, pread64, bytes, (int descriptor, void *target, size_t bytes, off64_t offset),
      (int descriptor, void *target, size_t bytes, off64_t offset, size_t room), descriptor, target,
      bytes, offset)

INPUT(ssize_t, -1, recv, bytes, (int descriptor, void *target, size_t bytes, int flags),
      (int descriptor, void *target, size_t bytes, size_t room, int flags), descriptor, target,
      bytes, flags)
INPUT(ssize_t, -1, recvfrom, bytes,
      (int descriptor, void *target, size_t bytes, int flags, __SOCKADDR_ARG from,
       socklen_t *from_bytes),
      (int descriptor, void *target, size_t bytes, size_t room, int flags, __SOCKADDR_ARG from,
       socklen_t *from_bytes),
      descriptor, target, bytes, flags, from, from_bytes)

INPUT(ssize_t, -1, readlink, bytes, (const char *path, char *target, size_t bytes),
      (const char *path, char *target, size_t bytes, size_t room), path, target, bytes)
INPUT(ssize_t, -1, readlinkat, bytes, (int folder, const char *path, char *target, size_t bytes),
      (int folder, const char *path, char *target, size_t bytes, size_t room), folder, path, target,
      bytes)
INPUT(char *, NULL, getcwd, bytes, (char *target, size_t bytes),
      (char *target, size_t bytes, size_t room), target, bytes)

INPUT(size_t, 0u, fread, bytes_of(count, size),
      (void *target, size_t size, size_t count, FILE *stream),
      (void *target, size_t room, size_t size, size_t count, FILE *stream), target, size, count,
      stream)
INPUT(size_t, 0u, fread_unlocked, bytes_of(count, size),
      (void *target, size_t size, size_t count, FILE *stream),
      (void *target, size_t room, size_t size, size_t count, FILE *stream), target, size, count,
      stream)

INLINE size_t bytes_of_line(int bytes) { return bytes > 0 ? (size_t)bytes : 0; }

INPUT(char *, NULL, fgets, bytes_of_line(bytes), (char *target, int bytes, FILE *stream),
      (char *target, size_t room, int bytes, FILE *stream), target, bytes, stream)
INPUT(char *, NULL, fgets_unlocked, bytes_of_line(bytes), (char *target, int bytes, FILE *stream),
      (char *target, size_t room, int bytes, FILE *stream), target, bytes, stream)
