// A program with plain operators of its own loads a library whose initialiser waits for one of its threads, which calls for the first
// time what hakmem stands before: nobody may wait for the dynamic linker there, whose lock the loading thread holds.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <threads.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

static std::atomic<unsigned>
    stage; /* 1: is being loaded; 2: the other thread has made its blocks */

void *operator new(std::size_t size) {
  void *block = std::malloc(size);
  if (!block) throw std::bad_alloc();
  return block;
}
void operator delete(void *block) noexcept { std::free(block); }

struct alignas(64) line {
  char bytes[64];
};

static bool reaches(unsigned wanted) {
  for (unsigned millisecond = 0; stage < wanted && millisecond < 5000; millisecond++) usleep(1000);
  return stage >= wanted;
}

/* The compiler is not to know that a new and its delete cancel out. */
template <typename T>
static T *hide(T *pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

static void fail(const char *what) {
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

extern "C" void host_is_loading() {
  stage = 1;
  if (!reaches(2)) fail("the other thread waits for the dynamic linker");
}

static int do_nothing(void *) { return 0; }

static void *call_all(void *) {
  thrd_t thread;
  if (!reaches(1)) fail("nothing is loaded");
  if (prctl(PR_SET_NAME, "caller", 0, 0, 0) != 0) fail("no name");
  if (unshare(0) != 0) fail("nothing to unshare, and refused");
  if (setns(-1, 0) == 0) fail("no namespace, and entered");
  if (pthread_atfork(nullptr, nullptr, nullptr) != 0) fail("no fork handlers");
  if (thrd_create(&thread, do_nothing, nullptr) != thrd_success) fail("no thread");
  thrd_join(thread, nullptr);
  delete hide(new (std::nothrow) int);
  delete[] hide(new (std::nothrow) int[10]);
  delete hide(new (std::nothrow) line);
  delete[] hide(new (std::nothrow) line[10]);
  stage = 2;
  return nullptr;
}

int main(int argc, char **argv) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, call_all, nullptr) != 0) fail("no thread");
  if (argc != 2 || !dlopen(argv[1], RTLD_NOW)) fail("no library");
  pthread_join(thread, nullptr);
}
