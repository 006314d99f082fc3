// contents: live blocks whose contents the test knows, each kind in a number of its own; then "ready" and waits.
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace shop {
struct Item {
  virtual ~Item() = default;
  virtual int price() const = 0;
};
struct Named {
  virtual ~Named() = default;
  char name[40] = "x";
};
template <class T>
struct Box : Item, Named {  // two bases
  T value{};
  int price() const override { return 3; }
};
struct Order : Item {
  long lines[20] = {};
  int price() const override { return 7; }
};
}  // namespace shop

struct operations {
  int (*open)();
  int (*close)();
};
static int nothing() { return 0; }
extern const operations disk_operations;
const operations disk_operations = {nothing, nothing};
struct device {
  const operations *calls;
  long numbers[30];
};

enum {
  ORDERS = 3000,
  BOXES = 2000,
  ARRAYS = 200,
  TEXTS = 4000,
  WIDE = 500,
  TABLES = 600,
  ZEROS = 1500,
  NOISE = 700,
  INTEGERS = 900,
  DEVICES = 800,
  KEPT = 20000
};

void *volatile kept[KEPT];
static int count;
void *volatile single;  // a block that the test asks about
void *volatile freed;
void *volatile big;

static void keep(void *block) { kept[count++] = block; }

static void *made(size_t bytes) {
  void *block = calloc(1, bytes);
  if (!block) abort();
  return block;
}

static void make_text() {
  for (int i = 0; i < TEXTS; i++) {
    char *text = static_cast<char *>(made(60));
    snprintf(text, 60, "the quick brown fox number %d", i);
    keep(text);
  }
  for (int i = 0; i < WIDE; i++) {
    char16_t *text = static_cast<char16_t *>(made(120));
    for (int at = 0; at < 50; at++) text[at] = static_cast<char16_t>('a' + at % 26);
    keep(text);
  }
}

static void make_plain() {
  uint64_t random = 88172645463325252ull;
  for (int i = 0; i < TABLES; i++) {
    void **table = static_cast<void **>(made(200));
    for (int at = 0; at < 20; at++) table[at] = kept[(i * 20 + at) % TEXTS];
    keep(table);
  }
  for (int i = 0; i < ZEROS; i++) keep(made(360));
  for (int i = 0; i < NOISE; i++) {
    uint64_t *noise = static_cast<uint64_t *>(made(1000));
    for (int at = 0; at < 125; at++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      noise[at] = random | 1ull << 60;
    }
    keep(noise);
  }
  for (int i = 0; i < INTEGERS; i++) {
    int32_t *numbers = static_cast<int32_t *>(made(480));
    for (int at = 0; at < 120; at++) numbers[at] = at * i % 5000;
    keep(numbers);
  }
}

static void *thread(void *) {
  free(made(100000));  // needs a heap
  single = made(3000);
  static_cast<void **>(single)[5] = kept[0];
  pthread_barrier_wait(reinterpret_cast<pthread_barrier_t *>(const_cast<void *>(big)));
  for (;;) pause();
}

int main() {
  make_text();  // first: tables point there
  for (int i = 0; i < ORDERS; i++) keep(new shop::Order);
  for (int i = 0; i < BOXES; i++) keep(new shop::Box<double>);
  for (int i = 0; i < ARRAYS; i++) keep(new shop::Order[4]);
  make_plain();
  for (int i = 0; i < DEVICES; i++) {
    device *one = static_cast<device *>(made(sizeof *one));
    one->calls = &disk_operations;
    one->numbers[3] = 5;
    one->numbers[4] = 6;
    keep(one);
  }
  big = made(5 << 20);
  pthread_barrier_init(static_cast<pthread_barrier_t *>(big), nullptr, 2);
  pthread_t id;
  if (pthread_create(&id, nullptr, thread, nullptr)) abort();
  pthread_barrier_wait(static_cast<pthread_barrier_t *>(big));
  void *once = made(2000);
  memset(once, 'z', 1999);
  freed = once;
  free(once);
  printf(
      "orders 192 %d\nboxes 0 %d\ntexts 64 %d\nwide 128 %d\ntables 208 %d\nzeros 384 %d\nnoise "
      "1024 %d\n"
      "integers 480 %d\ndevices 256 %d\nsingle %p 1\nfreed %p 1\nbig %p 1\nready\n",
      ORDERS, BOXES, TEXTS, WIDE, TABLES, ZEROS, NOISE, INTEGERS, DEVICES, single, freed, big);
  fflush(stdout);
  for (;;) pause();
}
