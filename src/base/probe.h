/* probe.h: USDT probes without SystemTap's header: a nop, and a note in the file with the nop's
 * address, the places of its arguments and the address of the semaphore that tracers increment
 * (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).
 *
 * The semaphore is two bytes of the file's data, given as an assembler expression; each argument
 * has 8 bytes. */
#ifndef HAK_BASE_PROBE_H
#define HAK_BASE_PROBE_H

#include "base/compiler.h"

#define PROBE_NOTE(provider, name, semaphore, arguments)                  \
  "990: nop\n"                                                            \
  ".pushsection .note.stapsdt,\"\",\"note\"\n"                            \
  ".balign 4\n"                                                           \
  ".4byte 992f-991f, 994f-993f, 3\n"                                      \
  "991: .asciz \"stapsdt\"\n"                                             \
  "992: .balign 4\n"                                                      \
  "993: .8byte 990b\n"                                                    \
  ".8byte _.stapsdt.base\n"                                               \
  ".8byte " semaphore                                                     \
  "\n"                                                                    \
  ".asciz \"" provider                                                    \
  "\"\n"                                                                  \
  ".asciz \"" name                                                        \
  "\"\n"                                                                  \
  ".asciz \"" arguments                                                   \
  "\"\n"                                                                  \
  "994: .balign 4\n"                                                      \
  ".popsection\n"                                                         \
  ".ifndef _.stapsdt.base\n"                                              \
  ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
  ".weak _.stapsdt.base\n"                                                \
  ".hidden _.stapsdt.base\n"                                              \
  "_.stapsdt.base: .space 1\n"                                            \
  ".size _.stapsdt.base, 1\n"                                             \
  ".popsection\n"                                                         \
  ".endif\n"

#define PROBE_1(provider, name, semaphore, first) \
  __asm__ volatile(PROBE_NOTE(provider, name, semaphore, "8@%0") : : "r"(first) : "memory")
#define PROBE_3(provider, name, semaphore, first, second, third)           \
  __asm__ volatile(PROBE_NOTE(provider, name, semaphore, "8@%0 8@%1 8@%2") \
                   :                                                       \
                   : "r"(first), "r"(second), "r"(third)                   \
                   : "memory")

#endif
