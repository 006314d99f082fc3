/* fork_handlers.c: a library that guards a lock of its own at every fork, as many do.  What the
 * program is linked with is initialised before what is preloaded. */
#include <pthread.h>

extern pthread_mutex_t library_lock;
pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

static void before(void) { pthread_mutex_lock(&library_lock); }
static void after(void) { pthread_mutex_unlock(&library_lock); }

__attribute__((constructor)) static void at_load(void) { pthread_atfork(before, after, after); }
