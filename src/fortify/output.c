/* output.c: what is written out of a block: nobody may see what lies past its end. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fortify/forward.h"

#undef fwrite_unlocked /* a macro, too */

EXPORT ssize_t write(int descriptor, const void *source, size_t bytes) {
  check_read("write", source, bytes);
  FORWARD(-1, write, descriptor, source, bytes);
}
EXPORT ssize_t pwrite(int descriptor, const void *source, size_t bytes, off_t offset) {
  check_read("pwrite", source, bytes);
  FORWARD(-1, pwrite, descriptor, source, bytes, offset);
}
EXPORT ssize_t pwrite64(int descriptor, const void *source, size_t bytes, off64_t offset) {
  check_read("pwrite64", source, bytes);
  FORWARD(-1, pwrite64, descriptor, source, bytes, offset);
}
EXPORT ssize_t send(int descriptor, const void *source, size_t bytes, int flags) {
  check_read("send", source, bytes);
  FORWARD(-1, send, descriptor, source, bytes, flags);
}
EXPORT ssize_t sendto(int descriptor, const void *source, size_t bytes, int flags,
                      __CONST_SOCKADDR_ARG to, socklen_t to_bytes) {
  check_read("sendto", source, bytes);
  FORWARD(-1, sendto, descriptor, source, bytes, flags, to, to_bytes);
}
EXPORT size_t fwrite(const void *restrict source, size_t size, size_t count,
                     FILE *restrict stream) {
  check_read("fwrite", source, bytes_of(count, size));
  FORWARD(0, fwrite, source, size, count, stream);
}
EXPORT size_t fwrite_unlocked(const void *restrict source, size_t size, size_t count,
                              FILE *restrict stream) {
  check_read("fwrite_unlocked", source, bytes_of(count, size));
  FORWARD(0, fwrite_unlocked, source, size, count, stream);
}
