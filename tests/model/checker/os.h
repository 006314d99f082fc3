/* os.h: the operating system of the model, as scenarios set it. */
#ifndef MODEL_OS_H
#define MODEL_OS_H

#include <stddef.h>
#include <stdint.h>

struct model_os {
  uint64_t now_ns;       /* set it while no thread runs */
  uint64_t last_wait_ms; /* a thread that would wait so long is done */
  void (*look_at_purge)(uintptr_t address, size_t bytes); /* called by os_purge */
  void (*end_of_thread)(void *argument);                  /* the argument of os_thread_exit_init */
  void *(*thread_body)(void *argument);                   /* the argument of os_thread_start */
};
extern struct model_os model_os;

#endif
