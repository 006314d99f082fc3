/* word.h: a word of memory that the kernel says can be read; of a stack, or whatever a recipe leads
 * to. */
#ifndef HAK_STACK_WORD_H
#define HAK_STACK_WORD_H

#include "base/compiler.h"

READS_ANY_STACK uintptr_t word_at(uintptr_t address) { return *(const uintptr_t *)address; }

#endif
