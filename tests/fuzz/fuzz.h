/* fuzz.h: what fuzz targets and the replay of their inputs share.
 *
 * A target is one file with LLVMFuzzerTestOneInput; libFuzzer drives it (`make fuzz`), and replay.c
 * drives it in `make test`.  It runs on the fake operating system, and a check that fails ends the
 * process. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* On standard output: what the library says on standard error is under test too. */
#define REQUIRE(condition) \
  ((condition) ? (void)0   \
               : (printf("%s:%d: %s\n", __FILE__, __LINE__, #condition), fflush(stdout), abort()))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes of an input, one after the other; 0 when there are no more. */
struct input {
  const uint8_t *at, *end;
};

static inline bool input_is_empty(const struct input *input) { return input->at == input->end; }

static inline uint8_t input_byte(struct input *input) {
  return input_is_empty(input) ? 0 : *input->at++;
}

static inline size_t input_word(struct input *input) {
  size_t low = input_byte(input);
  return low | (size_t)input_byte(input) << 8;
}

#endif
