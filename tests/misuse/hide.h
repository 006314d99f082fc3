/* hide.h: keeps the compiler from seeing (and warning about, or optimising on) what these programs
 * do wrong on purpose. */
#ifndef TESTS_MISUSE_HIDE_H
#define TESTS_MISUSE_HIDE_H

static inline void *hide(const volatile void *pointer) {
  void *volatile hidden = (void *)pointer;
  return hidden;
}

#endif
