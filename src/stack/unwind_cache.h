/* unwind_cache.h: rules that were found, because the way to one is long and the same call sites come again and again. */
#ifndef HAK_STACK_UNWIND_CACHE_H
#define HAK_STACK_UNWIND_CACHE_H

#include "os/os.h"
#include "stack/unwind_rule.h"

/* The rule at an instruction of the module; false when its tables do not say, or in terms that are not known here. */
bool unwind_cache_find(const struct os_module *module, uintptr_t instruction,
                       struct unwind_rule *rule);

#endif
