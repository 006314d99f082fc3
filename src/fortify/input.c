/* input.c: what is read into a block.  The room that is named must be there, however much comes. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fortify/forward.h"

#undef fread_unlocked /* a macro, too */

/* ---- descriptors --------------------------------------------------------------------------------------- */

EXPORT ssize_t read(int descriptor, void *target, size_t bytes) {
  check_write("read", target, bytes);
  FORWARD(-1, read, descriptor, target, bytes);
}
CHECKED(ssize_t, __read_chk, int descriptor, void *target, size_t bytes, size_t room) {
  check_room(bytes, room);
  check_write("read", target, bytes);
  FORWARD(-1, read, descriptor, target, bytes);
}

EXPORT ssize_t pread(int descriptor, void *target, size_t bytes, off_t offset) {
  check_write("pread", target, bytes);
  FORWARD(-1, pread, descriptor, target, bytes, offset);
}
CHECKED(ssize_t, __pread_chk, int descriptor, void *target, size_t bytes, off_t offset,
        size_t room) {
  check_room(bytes, room);
  check_write("pread", target, bytes);
  FORWARD(-1, pread, descriptor, target, bytes, offset);
}

EXPORT ssize_t pread64(int descriptor, void *target, size_t bytes, off64_t offset) {
  check_write("pread64", target, bytes);
  FORWARD(-1, pread64, descriptor, target, bytes, offset);
}
CHECKED(ssize_t, __pread64_chk, int descriptor, void *target, size_t bytes, off64_t offset,
        size_t room) {
  check_room(bytes, room);
  check_write("pread64", target, bytes);
  FORWARD(-1, pread64, descriptor, target, bytes, offset);
}

/* ---- sockets ------------------------------------------------------------------------------------------- */

EXPORT ssize_t recv(int descriptor, void *target, size_t bytes, int flags) {
  check_write("recv", target, bytes);
  FORWARD(-1, recv, descriptor, target, bytes, flags);
}
CHECKED(ssize_t, __recv_chk, int descriptor, void *target, size_t bytes, size_t room, int flags) {
  check_room(bytes, room);
  check_write("recv", target, bytes);
  FORWARD(-1, recv, descriptor, target, bytes, flags);
}

EXPORT ssize_t recvfrom(int descriptor, void *restrict target, size_t bytes, int flags,
                        __SOCKADDR_ARG from, socklen_t *restrict from_bytes) {
  check_write("recvfrom", target, bytes);
  FORWARD(-1, recvfrom, descriptor, target, bytes, flags, from, from_bytes);
}
CHECKED(ssize_t, __recvfrom_chk, int descriptor, void *restrict target, size_t bytes, size_t room,
        int flags, __SOCKADDR_ARG from, socklen_t *restrict from_bytes) {
  check_room(bytes, room);
  check_write("recvfrom", target, bytes);
  FORWARD(-1, recvfrom, descriptor, target, bytes, flags, from, from_bytes);
}

/* ---- paths ---------------------------------------------------------------------------------------------- */

EXPORT ssize_t readlink(const char *restrict path, char *restrict target, size_t bytes) {
  check_write("readlink", target, bytes);
  FORWARD(-1, readlink, path, target, bytes);
}
CHECKED(ssize_t, __readlink_chk, const char *path, char *target, size_t bytes, size_t room) {
  check_room(bytes, room);
  check_write("readlink", target, bytes);
  FORWARD(-1, readlink, path, target, bytes);
}

EXPORT ssize_t readlinkat(int folder, const char *restrict path, char *restrict target,
                          size_t bytes) {
  check_write("readlinkat", target, bytes);
  FORWARD(-1, readlinkat, folder, path, target, bytes);
}
CHECKED(ssize_t, __readlinkat_chk, int folder, const char *path, char *target, size_t bytes,
        size_t room) {
  check_room(bytes, room);
  check_write("readlinkat", target, bytes);
  FORWARD(-1, readlinkat, folder, path, target, bytes);
}

EXPORT char *getcwd(char *target, size_t bytes) {
  check_write("getcwd", target, bytes);
  FORWARD(NULL, getcwd, target, bytes);
}
CHECKED(char *, __getcwd_chk, char *target, size_t bytes, size_t room) {
  check_room(bytes, room);
  check_write("getcwd", target, bytes);
  FORWARD(NULL, getcwd, target, bytes);
}

/* ---- streams --------------------------------------------------------------------------------------------- */

EXPORT size_t fread(void *restrict target, size_t size, size_t count, FILE *restrict stream) {
  check_write("fread", target, bytes_of(count, size));
  FORWARD(0, fread, target, size, count, stream);
}
EXPORT size_t fread_unlocked(void *restrict target, size_t size, size_t count,
                             FILE *restrict stream) {
  check_write("fread_unlocked", target, bytes_of(count, size));
  FORWARD(0, fread_unlocked, target, size, count, stream);
}
CHECKED(size_t, __fread_chk, void *target, size_t room, size_t size, size_t count, FILE *stream) {
  check_room(bytes_of(count, size), room);
  check_write("fread", target, bytes_of(count, size));
  FORWARD(0, fread, target, size, count, stream);
}
CHECKED(size_t, __fread_unlocked_chk, void *target, size_t room, size_t size, size_t count,
        FILE *stream) {
  check_room(bytes_of(count, size), room);
  check_write("fread_unlocked", target, bytes_of(count, size));
  FORWARD(0, fread_unlocked, target, size, count, stream);
}

INLINE size_t bytes_of_line(int bytes) { return bytes > 0 ? (size_t)bytes : 0; }

EXPORT char *fgets(char *restrict target, int bytes, FILE *restrict stream) {
  check_write("fgets", target, bytes_of_line(bytes));
  FORWARD(NULL, fgets, target, bytes, stream);
}
EXPORT char *fgets_unlocked(char *restrict target, int bytes, FILE *restrict stream) {
  check_write("fgets_unlocked", target, bytes_of_line(bytes));
  FORWARD(NULL, fgets_unlocked, target, bytes, stream);
}
CHECKED(char *, __fgets_chk, char *target, size_t room, int bytes, FILE *stream) {
  check_room(bytes_of_line(bytes), room);
  check_write("fgets", target, bytes_of_line(bytes));
  FORWARD(NULL, fgets, target, bytes, stream);
}
CHECKED(char *, __fgets_unlocked_chk, char *target, size_t room, int bytes, FILE *stream) {
  check_room(bytes_of_line(bytes), room);
  check_write("fgets_unlocked", target, bytes_of_line(bytes));
  FORWARD(NULL, fgets_unlocked, target, bytes, stream);
}
