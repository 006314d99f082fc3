// A double free deep inside: names and lines for the frames of its call stack.
#include <stdlib.h>

namespace server {

void *volatile slot;

static inline __attribute__((always_inline)) void release() {
  free(slot);  // line of release
}

struct Connection {
  __attribute__((noinline)) void close(int times);
};

void Connection::close(int times) {
  for (; times > 0; times--) {
    release();  // line of close
    __asm__ volatile("" ::: "memory");
  }
}

}  // namespace server

static __attribute__((noinline)) void handle_request(server::Connection *connection) {
  connection->close(2);  // line of handle_request
  __asm__ volatile("" ::: "memory");
}

int main() {
  server::Connection connection;
  server::slot = malloc(40);
  handle_request(&connection);  // line of main
  return 0;
}
