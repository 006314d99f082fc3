/* A preloaded library that wraps functions of the C library, as tools do: at the first call of each
 * it allocates, then it calls the next one. -DWRAPPED: WRAP(name) for each; with up to six
 * arguments, numbers or pointers. No header declares them here. */
typedef long function(long a, long b, long c, long d, long e, long f);

void *malloc(unsigned long bytes);
void free(void *block);
void abort(void);
extern void *dlsym(void *handle, const char *name);

enum { BLOCKS = 40, STEP_BYTES = 100 };
#define NEXT ((void *)-1)

static void allocate(void) {
  void *blocks[BLOCKS];
  for (unsigned long at = 0; at < BLOCKS; at++) blocks[at] = malloc(1 + at * at * STEP_BYTES);
  for (unsigned long at = 0; at < BLOCKS; at++) free(blocks[at]);
}

#define WRAP(name)                                                   \
  long name(long a, long b, long c, long d, long e, long f) {        \
    static __thread int is_inside;                                   \
    static function *next;                                           \
    static int is_used;                                              \
    if (!next) next = (function *)dlsym(NEXT, #name);                \
    if (is_inside) abort(); /* pthread_once would wait for itself */ \
    if (!is_used) {                                                  \
      is_inside = 1;                                                 \
      allocate();                                                    \
      is_inside = 0;                                                 \
      is_used = 1;                                                   \
    }                                                                \
    return next(a, b, c, d, e, f);                                   \
  }
WRAPPED
