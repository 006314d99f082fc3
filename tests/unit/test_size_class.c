/* src/map/size_class: the laws of its header, over every size up to 1 MiB. */
#include "map/size_class.h"

#include "unit.h"

TEST(every_size_fits_its_class) {
  size_t before = 0;
  for (size_t size = 0; size <= LARGE_MAX_BYTES; size++) {
    unsigned class = class_of_size(size);
    if (class >= CLASS_COUNT || class_bytes(class) < size || class_bytes(class) < before)
      fail_msg("size %zu has class %u", size, class);
    /* The smallest that fits. */
    if (size > 0 && class_floor_bytes(class) >= size)
      fail_msg("size %zu has class %u, not the one below", size, class);
    before = class_bytes(class);
  }
  assert_int_equal(before, class_bytes(CLASS_COUNT - 1));
}

TEST(a_class_is_its_own) {
  for (unsigned class = 0; class < CLASS_COUNT; class ++)
    if (class_bytes(class)) assert_int_equal(class_of_size(class_bytes(class)), class);
}

/* At most a quarter of a block is lost to rounding, from 16-byte steps (T1) on. */
TEST(rounding_loss) {
  for (size_t size = 128; size <= MID_MAX_BYTES; size++)
    assert_true(class_bytes(class_of_size(size)) - size < size / 4 + 1);
}

TEST(natural_alignment) {
  assert_int_equal(class_bytes(0), 8);
  for (unsigned class = 1; class < CLASS_COUNT; class ++)
    assert_int_equal(class_bytes(class) % 16, 0);
}

TEST(smallest_aligned_class) {
  for (size_t alignment = 1; alignment <= STEPPED_MAX_BYTES; alignment *= 2)
    for (size_t size = 0; size <= MID_MAX_BYTES; size++) {
      unsigned class = class_of_size(size);
      while (class < FITTED_CLASS_FIRST && class_bytes(class) % alignment) class ++;
      if (class == FITTED_CLASS_FIRST ||
          (class_bytes(class) > STEPPED_MAX_BYTES && alignment > FILLING_UNIT_BYTES))
        class = SLAB_CLASS_COUNT; /* none, or a multiple by chance */
      if (slab_class_of(size, alignment) != class) fail_msg("size %zu, by %zu", size, alignment);
    }
  assert_int_equal(slab_class_of(1, MID_MAX_BYTES * 2), SLAB_CLASS_COUNT);
}

TEST(shapes_of_slabs) {
  for (unsigned class = 0; class < FITTED_CLASS_FIRST; class ++) {
    const struct slab_shape *shape = &slab_shapes[class];
    assert_int_equal(shape->block_bytes, class_bytes(class));
    assert_int_equal(shape->capacity, slots_of_class(class) * GRANULE_BYTES / class_bytes(class));
    assert_true(shape->capacity >= (class_bytes(class) <= STEPPED_MAX_BYTES ? 8 : 4));
    assert_true(shape->slot_count <= 4);
    assert_int_equal(shape->word_count, (shape->capacity + 63) / 64);
    assert_true(shape->inverse == inverse_of_odd(class_bytes(class) >> shape->shift));
    assert_true(class_bytes(class) >> shape->shift & 1);
  }
}

TEST(tiers) {
  assert_int_equal(class_of_size(TINY_MAX_BYTES), TINY_CLASS_COUNT - 1);
  assert_int_equal(class_of_size(MID_MAX_BYTES), FITTED_CLASS_FIRST - 1);
  assert_int_equal(class_of_size(LARGE_MAX_BYTES), CLASS_COUNT - 1);
  assert_string_equal(class_tier_name(0), "tiny");
  assert_string_equal(class_tier_name(TINY_CLASS_COUNT - 1), "tiny");
  assert_string_equal(class_tier_name(TINY_CLASS_COUNT), "mid");
  assert_string_equal(class_tier_name(SLAB_CLASS_COUNT), "large");
  assert_int_equal((int)large_class_of_granules(2), SLAB_CLASS_COUNT);
  assert_int_equal((int)large_class_of_granules(17), CLASS_COUNT - 1); /* room for its colour */
  assert_int_equal(class_bytes(CLASS_COUNT - 1), LARGE_MAX_BYTES);
  for (unsigned class = SLAB_CLASS_COUNT; class < CLASS_COUNT; class ++)
    assert_int_equal(large_class_of_granules(large_granules_of_class(class)), class);
}
