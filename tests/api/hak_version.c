/* hak_version is the header's version, when header and library are of the same release. */
#include "api/check.h"
#include "hakmem/hakmem.h"

int main(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", HAKMEM_VERSION_MAJOR, HAKMEM_VERSION_MINOR,
           HAKMEM_VERSION_PATCH);
  CHECK_MSG(strcmp(hak_version(), version) == 0, "%s", hak_version());
  CHECK(hak_version() == hak_version());
  hak_free(hak_malloc(1)); /* the proof of which library it was */
  return 0;
}
