/* wide.c: wcs* and wcp*. */
#include <stdlib.h>
#include <wchar.h>

#include "fortify/check.h"
#include "fortify/memory.h"

#define CHARACTER wchar_t
#define STR(name) wcs##name
#define STP(name) wcp##name
#define STR_CHK(name) __wcs##name##_chk
#define STP_CHK(name) __wcp##name##_chk
#define TEXT_LENGTH REAL_OR(wcslen, loop_length)
#define TEXT_LENGTH_MAX REAL_OR(wcsnlen, loop_within)
#include "fortify/texts.def"
