/* unwind_cache.h: a cache of rules: finding one takes long, and the same call sites recur. */
#ifndef HAK_STACK_UNWIND_CACHE_H
#define HAK_STACK_UNWIND_CACHE_H

#include "os/os.h"
#include "stack/unwind_rule.h"

/* The rule at an instruction of the module; false when its tables have none, or express it in an unsupported way. */
bool unwind_cache_find(const struct os_module *module, uintptr_t instruction,
                       struct unwind_rule *rule);

#endif
