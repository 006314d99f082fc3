/* Lists of suspicions and findings. */
#include "broken.h"

#include <stdlib.h>

void finding_before(struct finding *finding, const struct chunk *before) {
  finding->before = before->address;
  finding->before_bytes = before->bytes;
  finding->before_state = before->is_free ? IS_FREE : IS_LIVE;
}

void findings_add(struct findings *findings, const struct finding *finding) {
  if (findings->count == FINDINGS_MAX) return;
  if (findings->list == NULL)
    findings->list = allocated(NULL, FINDINGS_MAX * sizeof *findings->list);
  for (size_t i = 0; i < findings->count; ++i)
    if (findings->list[i].chunk == finding->chunk && findings->list[i].what == finding->what)
      return;
  findings->list[findings->count++] = *finding;
}

static bool has(const struct findings *findings, const struct finding *finding) {
  for (size_t i = 0; i < findings->count; ++i) {
    const struct finding *one = &findings->list[i];
    if (one->chunk == finding->chunk && one->what == finding->what && one->word == finding->word)
      return true;
  }
  return false;
}

void findings_keep(struct findings *findings, const struct findings *again) {
  size_t kept = 0;
  for (size_t i = 0; i < findings->count; ++i)
    if (has(again, &findings->list[i])) findings->list[kept++] = findings->list[i];
  findings->count = kept;
}

bool is_broken(const struct findings *findings, uint64_t chunk) {
  for (size_t i = 0; i < findings->count; ++i)
    if (findings->list[i].chunk == chunk) return true;
  return false;
}
