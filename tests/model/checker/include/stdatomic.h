/* stdatomic.h: the compiler's own, except that each operation says first where it stands.
 *
 * The folder of this file comes first in the include path of the sources that are model checked, so
 * the real base/atomic.h, and all of src/, is compiled unchanged.  What an operation does is
 * decided in calls.c: the sources are compiled with -fsanitize=thread, which turns every access to
 * memory into a call, and the functions called are the model's. */
#ifndef MODEL_STDATOMIC_H
#define MODEL_STDATOMIC_H

#include_next <stdatomic.h>

/* One place in the source: by these texts rules find the operations that they change. */
struct model_site {
  const char *function, *operation, *object;
  int line;
  int state; /* the model's */
  const void *rule;
};
void model_at(struct model_site *site);
void model_pause(void);

#define MODEL_AT(operation, object)                                                     \
  static struct model_site model_site_ = {__func__, operation, object, __LINE__, 0, 0}; \
  model_at(&model_site_)

/* Operands come first: they may be atomic operations themselves. */
#define MODEL_OPERATION(name, call, object, value, order) \
  __extension__({                                         \
    __auto_type model_object_ = (object);                 \
    __typeof__(((void)0, *model_object_)) model_value_;   \
    model_value_ = (value);                               \
    MODEL_AT(name, #object);                              \
    call(model_object_, model_value_, order);             \
  })

#undef atomic_load_explicit
#define atomic_load_explicit(object, order) \
  __extension__({                           \
    __auto_type model_object_ = (object);   \
    MODEL_AT("load", #object);              \
    __atomic_load_n(model_object_, order);  \
  })

#undef atomic_store_explicit
#define atomic_store_explicit(object, value, order) \
  MODEL_OPERATION("store", __atomic_store_n, object, value, order)
#undef atomic_exchange_explicit
#define atomic_exchange_explicit(object, value, order) \
  MODEL_OPERATION("exchange", __atomic_exchange_n, object, value, order)
#undef atomic_fetch_add_explicit
#define atomic_fetch_add_explicit(object, value, order) \
  MODEL_OPERATION("add", __atomic_fetch_add, object, value, order)
#undef atomic_fetch_sub_explicit
#define atomic_fetch_sub_explicit(object, value, order) \
  MODEL_OPERATION("sub", __atomic_fetch_sub, object, value, order)
#undef atomic_fetch_or_explicit
#define atomic_fetch_or_explicit(object, value, order) \
  MODEL_OPERATION("or", __atomic_fetch_or, object, value, order)
#undef atomic_fetch_and_explicit
#define atomic_fetch_and_explicit(object, value, order) \
  MODEL_OPERATION("and", __atomic_fetch_and, object, value, order)

#define MODEL_CAS(weak, object, expected, desired, success, failure)                         \
  __extension__({                                                                            \
    __auto_type model_object_ = (object);                                                    \
    __auto_type model_expected_ = (expected);                                                \
    __typeof__(((void)0, *model_object_)) model_value_;                                      \
    model_value_ = (desired);                                                                \
    MODEL_AT("cas", #object);                                                                \
    __atomic_compare_exchange_n(model_object_, model_expected_, model_value_, weak, success, \
                                failure);                                                    \
  })
#undef atomic_compare_exchange_weak_explicit
#define atomic_compare_exchange_weak_explicit(object, expected, desired, success, failure) \
  MODEL_CAS(1, object, expected, desired, success, failure)
#undef atomic_compare_exchange_strong_explicit
#define atomic_compare_exchange_strong_explicit(object, expected, desired, success, failure) \
  MODEL_CAS(0, object, expected, desired, success, failure)

/* What cpu_relax() calls: a thread that spins waits for something to change. */
#if defined(__x86_64__) || defined(__i386__)
#define __builtin_ia32_pause model_pause
#endif

#endif
