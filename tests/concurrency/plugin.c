/* plugin.c: a shared object for dlopen_plugin.c.  Linked against libhakmem or against libc alone;
 * what `malloc` means here depends on how it is loaded. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void *plugin_malloc(size_t size);
void *plugin_realloc(void *block, size_t size);
void plugin_free(void *block);
char *plugin_strdup(const char *text);

void *plugin_malloc(size_t size) { return malloc(size); }

void *plugin_realloc(void *block, size_t size) { return realloc(block, size); }

void plugin_free(void *block) { free(block); }

/* libc's strdup allocates with whatever malloc the program as a whole has. */
char *plugin_strdup(const char *text) { return strdup(text); }

/* While it is being loaded: a block of libc's maker, unless the plugin has another malloc than
 * libc, and one of its own that outlives this. */
static void *kept;

__attribute__((constructor)) static void begin(void) {
#ifndef BRINGS_ITS_MALLOC
  free(strdup("made by libc"));
#endif
  kept = realloc(malloc(100), 5000);
#ifdef INNER
  if (dlopen(INNER, RTLD_NOW) == NULL) abort();
#endif
}

__attribute__((destructor)) static void end(void) { free(kept); }
