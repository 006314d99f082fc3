/* src/map/size_class: where blocks of a slab begin, told by one multiplication without the index:
 * as the index tells it. */
#include "map/size_class.h"

#include "unit.h"

TEST(every_offset_of_every_class) {
  for (unsigned class = 0; class < FITTED_CLASS_FIRST; class ++) {
    const struct slab_shape *shape = &slab_shapes[class];
    bool is_told = shape->slot_count == 1;
    for (size_t offset = 0; offset < GRANULE_BYTES; offset++) {
      bool starts = is_told && slab_block_index(shape, offset) < shape->capacity;
      assert_int_equal(slab_block_starts_at(&slab_starts[class], offset), starts);
    }
    assert_int_equal(slab_starts[class].block_bytes, class_bytes(class));
  }
}
