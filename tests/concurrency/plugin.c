/* plugin.c: a shared object for dlopen_plugin.c.  Linked against libhakmem or against libc alone; what
 * `malloc` means here depends on how it is loaded. */
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
