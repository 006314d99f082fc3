/* All at once that a profile must live with, while it is switched on and off from outside: threads
 * that allocate and look at what they wrote, exceptions, dlopen and dlclose, fork, signals,
 * cancellation, threads that begin and end.
 *
 *   storm PLUGIN     answers each line on standard input with how often each of them was done;
 *                    ends with the input
 *
 * Handlers that interrupt anything allocate nothing; that of a signal which its thread raises does,
 * on a stack of its own. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
enum { CHURNERS = 2, HELD = 200, STACK_BYTES = 64 << 10, CHILD_TURNS = 300, DEPTH = 12 };

std::atomic<bool> is_over;
enum { CHURNED, THROWN, LOADED, FORKED, SIGNALED, RAISED, CANCELLED, ENDED, DEEDS };
std::atomic<unsigned long> done[DEEDS];

void did(unsigned deed) { done[deed].fetch_add(1, std::memory_order_relaxed); }

[[noreturn]] void fail(const char *what) {
  dprintf(STDERR_FILENO, "storm: %s\n", what);
  _exit(1);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct Random {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % bound;
  }
};

struct Held {
  unsigned char *block = nullptr;
  std::size_t bytes = 0;
  unsigned char mark = 0;

  void check() const {
    if (block && (block[0] != mark || block[bytes / 2] != mark || block[bytes - 1] != mark))
      fail("a block is not what it was");
  }
  void set(void *made, std::size_t size, unsigned char sign) {
    block = static_cast<unsigned char *>(made);
    if (!block) fail("no memory");
    bytes = size;
    mark = sign;
    block[0] = block[bytes / 2] = block[bytes - 1] = mark;
  }
};

void turn(Held &held, Random &random) {
  std::size_t bytes = 1 + random.below(std::uint64_t{1} << (3 + random.below(14)));
  if (random.below(2048) == 0) bytes <<= 7;  // Large and Big
  auto mark = static_cast<unsigned char>(random.below(256));
  void *aligned = nullptr;
  held.check();
  switch (random.below(5)) {
    case 0: return held.set(std::realloc(held.block, bytes), bytes, mark);
    case 1: std::free(held.block); return held.set(std::calloc(1, bytes), bytes, mark);
    case 2:
      std::free(held.block);
      if (posix_memalign(&aligned, 64, bytes)) fail("no memory");
      return held.set(aligned, bytes, mark);
    default: std::free(held.block); return held.set(std::malloc(bytes), bytes, mark);
  }
}

void churn_for(unsigned turns, Random &random) {
  Held held[16];
  for (; turns; turns--) turn(held[random.below(16)], random);
  for (Held &one : held) std::free(one.block);
}

void *churn(void *number) {
  Held held[HELD];
  Random random{reinterpret_cast<std::uintptr_t>(number) * 0x9E3779B97F4A7C15u};
  while (!is_over) {
    turn(held[random.below(HELD)], random);
    did(CHURNED);
    if (random.below(512) == 0) raise(SIGUSR2);
  }
  for (Held &one : held) std::free(one.block);
  return nullptr;
}

/* ---- exceptions ------------------------------------------------------------------------------ */

__attribute__((noinline)) std::size_t throw_from(unsigned depth, Random &random) {
  std::string text(random.below(300), 'x');
  std::vector<std::unique_ptr<int>> numbers;
  for (unsigned count = random.below(4); count; count--)
    numbers.push_back(std::make_unique<int>(1));
  if (!depth) throw std::runtime_error(text);
  std::size_t length = throw_from(depth - 1, random) + text.size();
  return length + numbers.size();
}

void *throw_exceptions(void *) {
  Random random{99};
  while (!is_over) {
    try {
      try {
        throw_from(static_cast<unsigned>(random.below(DEPTH)), random);
      } catch (const std::runtime_error &error) {
        if (std::string(error.what()).size() > 300) fail("what was thrown is another thing");
        throw std::logic_error(error.what());
      }
    } catch (const std::exception &) {
      did(THROWN);
    }
  }
  return nullptr;
}

/* ---- dlopen ---------------------------------------------------------------------------------- */

void *load_and_close(void *path) {
  std::vector<void *> blocks;
  while (!is_over) {
    void *library = dlopen(static_cast<const char *>(path), RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(dlerror());
    auto allocate = reinterpret_cast<void *(*)(std::size_t)>(dlsym(library, "plugin_malloc"));
    auto grow = reinterpret_cast<void *(*)(void *, std::size_t)>(dlsym(library, "plugin_realloc"));
    for (unsigned count = 0; count < 20; count++) blocks.push_back(grow(allocate(100), 3000));
    if (dlclose(library)) fail(dlerror());
    if (blocks.size() > 200) {  // they outlive who made them
      for (void *block : blocks) std::free(block);
      blocks.clear();
    }
    did(LOADED);
  }
  for (void *block : blocks) std::free(block);
  return nullptr;
}

/* ---- fork ------------------------------------------------------------------------------------ */

void *live_shortly(void *seed) {
  Random random{reinterpret_cast<std::uintptr_t>(seed) | 1};
  churn_for(50, random);
  return nullptr;
}

[[noreturn]] void be_child(unsigned number) {
  Random random{number * 77 + 1};
  alarm(120);
  churn_for(CHILD_TURNS, random);
  pthread_t thread;
  if (number % 4 == 0 && !pthread_create(&thread, nullptr, live_shortly, nullptr))
    pthread_join(thread, nullptr);
  if (number % 8 == 0 && fork() == 0) {
    churn_for(CHILD_TURNS, random);
    _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
  _exit(0);
}

void *fork_children(void *) {
  for (unsigned number = 0; !is_over; number++) {
    int status = 0;
    pid_t child = fork();
    if (child < 0) fail("no child");
    if (child == 0) be_child(number);
    while (waitpid(child, &status, 0) != child)
      if (errno != EINTR) fail("a child is lost");
    if (status) fail("a child did not end well");
    did(FORKED);
  }
  return nullptr;
}

/* ---- signals --------------------------------------------------------------------------------- */

void on_interruption(int) {
  int before = errno;
  volatile char local[1000];
  for (std::size_t at = 0; at < sizeof local; at += 64) local[at] = 1;
  errno = EBADMSG;
  did(SIGNALED);
  errno = before;
}

/* Of a thread that raised it, outside of the library. */
void on_raise(int) {
  int before = errno;
  Random random{done[RAISED].load() * 2 + 1};
  churn_for(20, random);
  did(RAISED);
  errno = before;
}

void *churn_and_be_interrupted(void *number) {
  std::unique_ptr<char[]> own(new char[STACK_BYTES]);
  stack_t stack{};
  stack.ss_sp = own.get();
  stack.ss_size = STACK_BYTES;
  if (sigaltstack(&stack, nullptr)) fail("no signal stack");
  churn(number);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  return nullptr;
}

void *send_signals(void *threads) {
  while (!is_over) {
    for (unsigned thread = 0; thread < CHURNERS + 1; thread++)
      pthread_kill(static_cast<pthread_t *>(threads)[thread], SIGUSR1);
    usleep(500);
  }
  return nullptr;
}

/* ---- cancellation, and threads that end ------------------------------------------------------ */

void free_all(void *held) {
  for (unsigned at = 0; at < 16; at++) std::free(static_cast<Held *>(held)[at].block);
}

void *wait_for_cancellation(void *seed) {
  Held held[16];
  Random random{reinterpret_cast<std::uintptr_t>(seed) | 1};
  pthread_cleanup_push(free_all, held);
  for (;;) {
    turn(held[random.below(16)], random);
    pthread_testcancel();
  }
  pthread_cleanup_pop(1);
  return nullptr;
}

void *cancel_threads(void *) {
  Random random{5};
  while (!is_over) {
    pthread_t thread;
    void *result = nullptr;
    void *seed = reinterpret_cast<void *>(random.below(1 << 20));
    if (pthread_create(&thread, nullptr, wait_for_cancellation, seed)) fail("no thread");
    for (auto turns = random.below(20); turns; turns--) sched_yield();
    if (pthread_cancel(thread) || pthread_join(thread, &result) || result != PTHREAD_CANCELED)
      fail("a thread was not cancelled");
    did(CANCELLED);
  }
  return nullptr;
}

/* Leaves what it made to others. */
void *make_and_end(void *places) {
  for (unsigned at = 0; at < 32; at++)
    static_cast<Held *>(places)[at].set(std::malloc(10 + at * 20), 10 + at * 20, 7);
  return nullptr;
}

void *begin_and_end(void *) {
  while (!is_over) {
    Held places[32];
    pthread_t thread;
    if (pthread_create(&thread, nullptr, make_and_end, places)) fail("no thread");
    pthread_join(thread, nullptr);
    for (Held &one : places) {
      one.check();
      std::free(one.block);
    }
    did(ENDED);
  }
  return nullptr;
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | flags;
  if (sigaction(signal, &action, nullptr)) fail("no handler");
}

void tell() {
  for (std::atomic<unsigned long> &deed : done) printf("%lu ", deed.load());
  puts("");
  fflush(stdout);
}
}  // namespace

int main(int count, char **arguments) {
  if (count != 2) return 2;
  handle(SIGUSR1, on_interruption, 0);
  handle(SIGUSR2, on_raise, SA_ONSTACK);
  static pthread_t interrupted[CHURNERS + 1], others[6];
  auto begin = [](pthread_t &thread, void *(*body)(void *), void *argument) {
    if (pthread_create(&thread, nullptr, body, argument)) fail("no thread");
  };
  for (std::uintptr_t number = 0; number < CHURNERS; number++)
    begin(interrupted[number], churn_and_be_interrupted, reinterpret_cast<void *>(number + 1));
  begin(interrupted[CHURNERS], throw_exceptions, nullptr);
  begin(others[0], load_and_close, arguments[1]);
  begin(others[1], fork_children, nullptr);
  begin(others[2], cancel_threads, nullptr);
  begin(others[3], begin_and_end, nullptr);
  begin(others[4], send_signals, interrupted);
  puts("ready");
  fflush(stdout);
  char line[16];
  while (fgets(line, sizeof line, stdin)) tell();
  is_over = true;
  pthread_join(others[4], nullptr);  // before those that it signals
  for (pthread_t thread : interrupted) pthread_join(thread, nullptr);
  for (unsigned other = 0; other < 4; other++) pthread_join(others[other], nullptr);
  tell();
  return 0;
}
