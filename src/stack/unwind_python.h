/* unwind_python.h: the functions of Python that this thread is in, by the interpreter's own frames.
 *
 *   a key of this thread ─▶ thread state ─▶ frame ─▶ frame ─▶ …     a frame ─▶ its code object, and the instruction
 *
 * The tool knows the interpreter's version, and writes where these stand: the recipe. Any recipe is
 * safe: each word is read only in the heap, on the thread's stack, or where the kernel says that it
 * can be, and counts only in a code object, by its type. The tool names functions later: the parts
 * of a code object are hashed, so that another one at the same address is not taken for it. Works
 * wherever unwind_stack does. */
#ifndef HAK_STACK_UNWIND_PYTHON_H
#define HAK_STACK_UNWIND_PYTHON_H

#include "base/compiler.h"

/* Offsets of 16 bits, the lowest first:
 *   thread   of the thread's handle in its state; of the frame; or of a record whose word at the
 *            third offset, less 1, is the frame
 *   frame    of the code object; of the caller's frame; of the instruction; of a byte that is
 *            kept with the frame, 0 for none */
struct python_recipe {
  uint64_t code_type; /* the address of PyCode_Type; 0: there is no interpreter */
  uint64_t thread, frame;
  uint64_t code;   /* a bit for each hashed word of a code object; PYTHON_BY_NUMBER; notes */
  uint64_t holder; /* where the state of the thread with the global lock stands; 0: the keys do */
};
#define PYTHON_BY_NUMBER (UINT64_C(1) << 32) /* the instruction is a number, else an address */

/* A frame is two words, which no address in user space looks like:  1 | the code object's address :
 * 63
 *                                                                    1 | hash : 31 | instruction : 24 | the frame's byte : 8 */
#define PYTHON_WORD (UINT64_C(1) << 63)
enum { PYTHON_FRAME_WORDS = 2, PYTHON_NOT_CODE = 0x80 /* in the byte: no function called it */ };

/* Writes the frames, innermost first, `max` words at most; returns their number. `is_known` says
 * without the kernel of some addresses that they can be read. */
size_t unwind_python(const struct python_recipe *recipe, bool (*is_known)(uintptr_t address),
                     uintptr_t *words, size_t max);

#endif
