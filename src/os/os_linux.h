/* os_linux.h: what the files that implement os.h on Linux know of each other. */
#ifndef HAK_OS_OS_LINUX_H
#define HAK_OS_OS_LINUX_H

#include "base/compiler.h"

/* True for code of the shared library; false when it is linked into the program, where all is one. */
bool os_is_in_library(uintptr_t instruction);

#endif
