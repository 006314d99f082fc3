/* override_threads.h: the functions that start a thread here. */
#ifndef HAK_API_OVERRIDE_THREADS_H
#define HAK_API_OVERRIDE_THREADS_H

#include "base/compiler.h"

/* A lookup of the name finds this one, hakmem's or another; its types are opaque here. */
int pthread_create(void *thread, const void *attributes, void *(*body)(void *), void *argument);

/* Hakmem's, which only libhakmem.so has. */
int hak_start_thread(void *thread, const void *attributes, void *(*body)(void *),
                     void *argument) WEAK HIDDEN;

#endif
