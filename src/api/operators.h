/* operators.h: what a program has itself of C++'s operators new and delete.
 *
 * C++ lets it replace the plain forms alone: all others are to call those, as the C++ library's do, which ours stand in front of.  So
 * ours do where another's plain forms are found first: in the program, or in a library before this one. */
#ifndef HAK_API_OPERATORS_H
#define HAK_API_OPERATORS_H

#include <stddef.h>

/* Another's, or NULL: ours are found. */
struct other_operators {
  void *(*new_plain)(size_t size);
  void *(*new_array)(size_t size);
  void *(*new_aligned)(size_t size, size_t alignment);
  void *(*new_array_aligned)(size_t size, size_t alignment);
  void (*delete_plain)(void *block);
  void (*delete_array)(void *block);
  void (*delete_aligned)(void *block, size_t alignment);
  void (*delete_array_aligned)(void *block, size_t alignment);
};
extern struct other_operators other_operators; /* constant from when the library is loaded */

/* When the library is loaded. */
void operators_look(void);

#endif
