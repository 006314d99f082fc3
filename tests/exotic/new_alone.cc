// A program that has an operator new of its own, as one that counts, limits or places, and leaves delete to others: all forms of new for one
// object and for arrays are to call it.
#include <cstdlib>
#include <new>

static unsigned long calls;

void *operator new(std::size_t size) {
  calls++;
  void *block = std::malloc(size + 100); /* of another class than it was asked for */
  if (!block) throw std::bad_alloc();
  return block;
}

struct object {
  char bytes[48];
};

/* The compiler is not to know that a new and its delete cancel out. */
static object *hide(object *pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

int main() {
  for (unsigned long count = 1; count < 100000; count *= 3) {
    calls = 0;
    delete hide(new object);
    delete hide(new (std::nothrow) object);
    delete[] hide(new object[count]);
    delete[] hide(new (std::nothrow) object[count]);
    if (calls != 4) return 1;
  }
}
