/* src/map/size_class.c: threads that make classes at once, and one that looks for the class of a
 * request. */
#include "map/size_class.h"
#include "model.h"

static void set_up(void) {}
static void make(void) { class_make_fitted(272); }
static void make_another(void) { class_make_fitted(1296); }

/* Whatever class it is, its shape can be read. */
static void look(void) {
  unsigned class = slab_class_of(264, 1);
  uint32_t bytes = slab_shapes[class].block_bytes;
  MODEL_REQUIRE(bytes == (class_is_fitted(class) ? 272 : 320) && class_bytes(class) == bytes);
  MODEL_REQUIRE(slab_starts[class].block_bytes == bytes);
}

/* Each size has one class at most, and each class one size; one that was refused can be made
 * now. */
static void check(void) {
  class_make_fitted(272), class_make_fitted(1296);
  MODEL_REQUIRE(class_bytes(FITTED_CLASS_FIRST) + class_bytes(FITTED_CLASS_FIRST + 1) ==
                272 + 1296);
  MODEL_REQUIRE(!class_bytes(FITTED_CLASS_FIRST + 2));
  look();
}

static const struct model_mutant mutants[] = {
    {"the entry before the shape", {{"class_make_fitted", "store", "entry", MODEL_WEAKEN, 0}}},
    {"an old shape", {{"slab_class_of", "load", "class_entry_of", MODEL_WEAKEN, 0}}},
    {"two threads make the same class",
     {{"class_make_fitted", "exchange", "is_making", MODEL_SPLIT, 0}}},
    {"an old class", {{"class_make_fitted", "exchange", "is_making", MODEL_WEAKEN, 0}}},
    {"the next class before this one",
     {{"class_make_fitted", "store", "is_making", MODEL_WEAKEN, 0}}}};

SCENARIO("fitted", .set_up = set_up, .threads = {make, make_another, look}, .check = check,
         MUTANTS(mutants));
SCENARIO("fitted-same", .set_up = set_up, .threads = {make, make, make_another}, .check = check);
