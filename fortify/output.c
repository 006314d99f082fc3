/* output.c: writes from a block: bytes past its end must not leave the process. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fortify/check.h"
#include "fortify/real.h"

#undef fwrite_unlocked /* a macro, too */

/* Writes `bytes` from `source`; the arguments after the list of parameters are passed on. */
#define OUTPUT(result, failure, name, bytes, parameters, ...)                       \
  EXPORT result name parameters {                                                   \
    return (check_read(#name, source, bytes), FORWARD(failure, name, __VA_ARGS__)); \
  }

OUTPUT(ssize_t, -1, write, bytes, (int descriptor, const void *source, size_t bytes), descriptor,
       source, bytes)
OUTPUT(ssize_t, -1, pwrite, bytes, (int descriptor, const void *source, size_t bytes, off_t offset),
       descriptor, source, bytes, offset)
OUTPUT(ssize_t, -1, pwrite64, bytes,
       (int descriptor, const void *source, size_t bytes, off64_t offset), descriptor, source,
       bytes, offset)
OUTPUT(ssize_t, -1, send, bytes, (int descriptor, const void *source, size_t bytes, int flags),
       descriptor, source, bytes, flags)
OUTPUT(ssize_t, -1, sendto, bytes,
       (int descriptor, const void *source, size_t bytes, int flags, __CONST_SOCKADDR_ARG to,
        socklen_t to_bytes),
       descriptor, source, bytes, flags, to, to_bytes)
OUTPUT(size_t, 0u, fwrite, bytes_of(count, size),
       (const void *source, size_t size, size_t count, FILE *stream), source, size, count, stream)
OUTPUT(size_t, 0u, fwrite_unlocked, bytes_of(count, size),
       (const void *source, size_t size, size_t count, FILE *stream), source, size, count, stream)
