/* frame_pointer.h: code that no table describes, with any number in the frame pointer: as in a
 * function that computes with it.  x86-64; for one source of a program. */
#ifndef UNWIND_FRAME_POINTER_H
#define UNWIND_FRAME_POINTER_H

void call_with_frame_pointer(unsigned long value, void (*function)(void));
__asm__(
    ".text\n"
    "call_with_frame_pointer:\n"
    "  push %rbp\n"
    "  mov %rdi, %rbp\n"
    "  call *%rsi\n"
    "  pop %rbp\n"
    "  ret\n");

#endif
