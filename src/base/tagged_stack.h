/* tagged_stack.h: a lock-free stack of numbered items (R. K. Treiber, IBM RJ 5118, 1986).
 *
 *   head:  | tag : 32 | item number + 1 : 32 |        0 in the low half = empty
 *
 * Each successful change of the head raises the tag, so an item that is popped and pushed again
 * between another thread's read and its compare-and-swap is noticed (no ABA).  The items' memory is
 * never given back, so reading the link of an item that somebody else has just popped is harmless.
 *
 * Law: an item is in at most one stack; whoever popped it is its only holder. */
#ifndef HAK_BASE_TAGGED_STACK_H
#define HAK_BASE_TAGGED_STACK_H

#include "base/atomic.h"
#include "base/compiler.h"

#define NO_ITEM UINT32_MAX

struct tagged_stack {
  ATOMIC(uint64_t) head;
};

/* Where item `number` keeps its link to the next one. */
typedef ATOMIC(uint32_t) *(*link_of_item)(uint32_t number);

INLINE uint64_t tagged_head(uint64_t old_head, uint32_t number) {
  return ((old_head >> 32) + 1) << 32 | (uint32_t)(number + 1);
}

/* Pushes the chain first … last, already linked; returns how often it had to try again. */
INLINE unsigned tagged_stack_push_chain(struct tagged_stack *stack, link_of_item link_of,
                                        uint32_t first, uint32_t last) {
  unsigned retries = 0;
  uint64_t head = load_relaxed(&stack->head);
  for (;;) {
    store_relaxed(link_of(last), (uint32_t)head - 1);
    /* release: the item's content before its appearance; pairs with the acquire in pop. */
    if (cas_weak_acq_rel(&stack->head, &head, tagged_head(head, first))) return retries;
    retries++;
  }
}

INLINE unsigned tagged_stack_push(struct tagged_stack *stack, link_of_item link_of,
                                  uint32_t number) {
  return tagged_stack_push_chain(stack, link_of, number, number);
}

/* Pops one item, or NO_ITEM. */
INLINE uint32_t tagged_stack_pop(struct tagged_stack *stack, link_of_item link_of) {
  uint64_t head = load_acquire(&stack->head); /* pairs with the push: link and content are there */
  for (;;) {
    uint32_t number = (uint32_t)head - 1;
    if (number == NO_ITEM) return NO_ITEM;
    uint32_t next = load_relaxed(link_of(number)); /* stale if raced; then the tag makes us retry */
    if (cas_weak_acq_rel(&stack->head, &head, tagged_head(head, next))) return number;
  }
}

INLINE bool tagged_stack_is_empty(const struct tagged_stack *stack) {
  return (uint32_t)load_relaxed(&stack->head) == 0; /* a hint */
}

/* Takes the whole chain; walk it with the items' links. */
INLINE uint32_t tagged_stack_pop_all(struct tagged_stack *stack) {
  uint64_t head = load_acquire(&stack->head);
  while ((uint32_t)head != 0)
    if (cas_weak_acq_rel(&stack->head, &head, tagged_head(head, NO_ITEM))) break;
  return (uint32_t)head - 1;
}

#endif
