/* maker.h: the makers of blocks; hardened mode records that of each block (hardened/trailer.h). */
#ifndef HAK_REPORT_MAKER_H
#define HAK_REPORT_MAKER_H

/* A block must be freed by its maker's counterpart (maker_verb). */
enum maker { MADE_BY_MALLOC, MADE_BY_NEW, MADE_BY_NEW_ARRAY };

static inline const char *maker_name(enum maker maker) {
  static const char names[][7] = {
      [MADE_BY_MALLOC] = "malloc", [MADE_BY_NEW] = "new", [MADE_BY_NEW_ARRAY] = "new[]"};
  return names[maker];
}
/* The function that frees its blocks. */
static inline const char *maker_verb(enum maker maker) {
  static const char verbs[][9] = {
      [MADE_BY_MALLOC] = "free", [MADE_BY_NEW] = "delete", [MADE_BY_NEW_ARRAY] = "delete[]"};
  return verbs[maker];
}

#endif
