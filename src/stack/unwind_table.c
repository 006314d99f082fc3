#include "stack/unwind_table.h"

/* Encodings of addresses: the lower half is the format, the upper half the base. */
enum {
  FORMAT_MASK = 0x07, /* without the sign: 0 and 4 have 8 bytes, 2 has two, 3 four */
  RELATIVE_TO_HERE = 0x10,
  RELATIVE_MASK = 0x70,
  INDIRECT = 0x80,
  SORTED_TABLE = 0x3b /* pairs of 4 bytes, relative to the header */
};

static size_t encoded_bytes(uint8_t encoding) {
  static const uint8_t bytes_of[FORMAT_MASK + 1] = {8, 0, 2, 4, 8};
  return bytes_of[encoding & FORMAT_MASK];
}

static bool is_understood(uint8_t encoding) {
  uint8_t relative = encoding & RELATIVE_MASK;
  return encoded_bytes(encoding) && !(encoding & INDIRECT) &&
         (relative == 0 || relative == RELATIVE_TO_HERE);
}

static uintptr_t take_address(struct unwind_bytes *bytes, uint8_t encoding) {
  uintptr_t here = (encoding & RELATIVE_MASK) == RELATIVE_TO_HERE ? (uintptr_t)bytes->at : 0;
  return here + (uintptr_t)bytes_take_signed(bytes, encoded_bytes(encoding));
}

/* ---- records --------------------------------------------------------------------------------- */

/* Without its length; empty if there is none in the module, or it is above 4 GiB. */
static struct unwind_bytes record_at(const struct os_module *module, uintptr_t address) {
  struct unwind_bytes rest = {(const uint8_t *)address, (const uint8_t *)module->tables_end};
  struct unwind_bytes nothing = {0};
  if (address < module->tables_begin || address >= module->tables_end) return nothing;
  uint64_t length = bytes_take(&rest, sizeof(uint32_t));
  return length <= bytes_left(&rest) ? bytes_part(&rest, length) : nothing;
}

/* The first word is the distance back to the common record. */
static struct unwind_bytes common_of(const struct os_module *module, struct unwind_bytes record) {
  uintptr_t here = (uintptr_t)record.at;
  return record_at(module, here - (uintptr_t)bytes_take(&record, sizeof(uint32_t)));
}

/* Records are made of whole words of 4 bytes. */
static uint64_t mix_bytes(uint64_t sum, struct unwind_bytes bytes) {
  const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
  uint64_t word;
  size_t count = bytes_left(&bytes) / sizeof word;
  sum += bytes_left(&bytes);
  for (size_t index = 0; index < count; index++) {
    memcpy(&word, bytes.at + index * sizeof word, sizeof word);
    sum = (sum ^ word) * factor;
    sum ^= sum >> 32;
  }
  bytes_skip(&bytes, count * sizeof word);
  return (sum ^ bytes_take(&bytes, sizeof(uint32_t))) * factor;
}

uint32_t unwind_table_check(const struct os_module *module, uintptr_t record) {
  struct unwind_bytes own = record_at(module, record);
  if (!bytes_left(&own)) return 0;
  return (uint32_t)(mix_bytes(mix_bytes(1, own), common_of(module, own)) >> 32) | 1;
}

/* ---- reading one ----------------------------------------------------------------------------- */

/* The result of its augmentation string, a letter for each item of its data. */
struct augmentation {
  uint8_t encoding; /* of the function's addresses */
  bool has_data, is_signal, is_known;
};

static void take_letter(char letter, struct unwind_bytes *data, struct augmentation *found) {
  if (letter == 'R') {
    found->encoding = bytes_take_one(data);
  } else if (letter == 'P') { /* the personality routine */
    uint8_t encoding = bytes_take_one(data);
    bytes_skip(data, encoded_bytes(encoding));
    found->is_known &= encoded_bytes(encoding) != 0;
  } else if (letter == 'L') {
    bytes_skip(data, 1);
  } else if (letter == 'S') {
    found->is_signal = true;
  } else {
    found->is_known &= letter == 'B' || letter == 'G'; /* kinds of pointer authentication, tags */
  }
}

/* The common record up to its program. */
static struct augmentation take_common(struct unwind_bytes *bytes, struct unwind_record *found) {
  struct augmentation result = {.is_known = true};
  bool is_common = bytes_take(bytes, sizeof(uint32_t)) == 0;
  uint8_t version = bytes_take_one(bytes);
  const uint8_t *letters = bytes->at;
  while (bytes_take_one(bytes)) {
  } /* to the end of the string */
  found->code_unit = bytes_take_unsigned_leb(bytes);
  found->data_unit = bytes_take_signed_leb(bytes);
  uint64_t column = version == 1 ? bytes_take_one(bytes) : bytes_take_unsigned_leb(bytes);
  result.has_data = *letters == 'z';
  result.is_known = is_common && (version == 1 || version == 3) && (result.has_data || !*letters) &&
                    unwind_register_of_column(column) == REGISTER_RETURN;
  if (!result.has_data) return result;
  struct unwind_bytes data = bytes_part(bytes, bytes_take_unsigned_leb(bytes));
  for (letters++; *letters && letters < bytes->at; letters++)
    take_letter((char)*letters, &data, &result);
  return result;
}

uintptr_t unwind_table_next(const struct os_module *module, uintptr_t record) {
  struct unwind_bytes own = record_at(module, record);
  return bytes_left(&own) ? (uintptr_t)own.end : 0;
}

bool unwind_table_describe(const struct os_module *module, uintptr_t record,
                           struct unwind_record *found, uintptr_t *code_bytes) {
  struct unwind_bytes own = record_at(module, record), common = common_of(module, own);
  if (!bytes_left(&own) || !bytes_left(&common)) return false;
  struct augmentation augmentation = take_common(&common, found);
  if (!augmentation.is_known || !is_understood(augmentation.encoding)) return false;
  bytes_skip(&own, sizeof(uint32_t));
  found->function = take_address(&own, augmentation.encoding);
  *code_bytes = take_address(&own, augmentation.encoding & FORMAT_MASK);
  if (augmentation.has_data) bytes_skip(&own, bytes_take_unsigned_leb(&own));
  found->common_program = common;
  found->program = own;
  found->is_signal = augmentation.is_signal;
  return true;
}

bool unwind_table_read(const struct os_module *module, uintptr_t record, uintptr_t instruction,
                       struct unwind_record *found) {
  uintptr_t code_bytes;
  return unwind_table_describe(module, record, found, &code_bytes) &&
         instruction - found->function < code_bytes;
}

/* ---- the sorted table ------------------------------------------------------------------------ */

struct table_row {
  int32_t function, record; /* relative to the header */
};

static const struct table_row *last_row_up_to(const struct table_row *rows, size_t count,
                                              intptr_t offset) {
  size_t first = 0;
  while (count > 1) {
    size_t half = count / 2;
    if (rows[first + half].function <= offset) first += half;
    count -= half;
  }
  return &rows[first];
}

uintptr_t unwind_table_search(const struct os_module *module, uintptr_t instruction) {
  uintptr_t header = module->unwind_header;
  if (header < module->tables_begin || header >= module->tables_end) return 0;
  struct unwind_bytes bytes = {(const uint8_t *)header, (const uint8_t *)module->tables_end};
  uint8_t version = bytes_take_one(&bytes), frame_encoding = bytes_take_one(&bytes);
  uint8_t count_encoding = bytes_take_one(&bytes), table_encoding = bytes_take_one(&bytes);
  if (version != 1 || table_encoding != SORTED_TABLE || !is_understood(count_encoding)) return 0;
  bytes_skip(&bytes, encoded_bytes(frame_encoding));
  size_t count = take_address(&bytes, count_encoding);
  bool is_aligned = (uintptr_t)bytes.at % sizeof(int32_t) == 0;
  if (!is_aligned || !count || count > bytes_left(&bytes) / sizeof(struct table_row)) return 0;
  const struct table_row *rows = (const struct table_row *)(const void *)bytes.at;
  intptr_t offset = (intptr_t)(instruction - header);
  const struct table_row *row = last_row_up_to(rows, count, offset);
  return row->function <= offset ? header + (uintptr_t)(intptr_t)row->record : 0;
}

bool unwind_table_has_start(const struct os_module *module, uintptr_t record,
                            uintptr_t instruction) {
  struct unwind_record found = {0};
  return unwind_table_read(module, record, instruction, &found) && found.function == instruction;
}
