/* SPDX-License-Identifier: MIT
 *
 * hakmem.hpp: hakmem for C++, on top of hakmem.h: an allocator for containers, an owner of a heap
 * and one of its use (C++11), memory resources over hakmem and over a heap (C++17).
 *
 * A program needs none of this: preloading or linking the library replaces `operator new`, and with
 * it the blocks of std::allocator and std::pmr::new_delete_resource().  Include this header
 *  - to have a container's blocks from hakmem regardless of `operator new`, in a program that
 *    defines its own;
 *  - to free each block with its size and its alignment, which finds mistakes: a block that is
 *    freed with a size of another size class is reported in one line (see hak_free_sized).
 *
 *     std::vector<int, hakmem::allocator<int>> numbers;
 *     std::pmr::vector<int> others(hakmem::resource());
 *
 *     hakmem::heap sessions("sessions");
 *     hakmem::heap_resource resource(sessions);
 *     std::pmr::vector<int> theirs(&resource);
 *
 *     // to the end of the block: operator new and malloc on this thread
 *     hakmem::heap_in_use use(sessions);
 *
 * Rules that hold for everything here:
 *  - no state, except for heaps: all allocators are equal, all resources are equal, and a block may
 *    be freed by any thread and through any of them;
 *  - sizes and alignments are in bytes; an alignment is any power of two;
 *  - on failure the new handler is called and the request repeated, as by `operator new`; without a
 *    new handler std::bad_alloc is thrown, or the program aborted where it is compiled without
 *    exceptions. */
#ifndef HAKMEM_HAKMEM_HPP
#define HAKMEM_HAKMEM_HPP

#include <hakmem/hakmem.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

#if __cplusplus >= 201703L && defined(__has_include)
#if __has_include(<memory_resource>)
#include <memory_resource>
#define HAKMEM_HAS_MEMORY_RESOURCE 1
#endif
#endif

namespace hakmem {

/* Not part of the interface. */
namespace detail {

/* True when hak_malloc(bytes) promises less than `alignment`. */
inline bool is_beyond_malloc(std::size_t bytes, std::size_t alignment) noexcept {
  return alignment > (bytes <= 8 ? 8U : 16U);
}

template <typename Exception>
[[noreturn]] void fail() {
#if defined(__cpp_exceptions)
  throw Exception();
#else
  std::abort();
#endif
}

/* NULL for `heap`: as hak_malloc. */
inline void *try_allocate(hak_heap *heap, std::size_t bytes, std::size_t alignment) noexcept {
  if (is_beyond_malloc(bytes, alignment)) {
    return heap != nullptr ? hak_heap_aligned_alloc(heap, alignment, bytes)
                           : hak_aligned_alloc(alignment, bytes);
  }
  return heap != nullptr ? hak_heap_malloc(heap, bytes) : hak_malloc(bytes);
}

inline void *allocate(std::size_t bytes, std::size_t alignment, hak_heap *heap = nullptr) {
  for (;;) {
    void *block = try_allocate(heap, bytes, alignment);
    if (block != nullptr) {
      return block;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) {
      fail<std::bad_alloc>();
    }
    handler();
  }
}

inline void deallocate(void *block, std::size_t bytes, std::size_t alignment) noexcept {
  if (is_beyond_malloc(bytes, alignment)) {
    hak_free_aligned_sized(block, alignment, bytes);
  } else {
    hak_free_sized(block, bytes);
  }
}

}  // namespace detail

/* ---- containers ------------------------------------------------------------------------------ */

/* Meets the requirements of Allocator: `std::map<K, V, std::less<K>,
 * hakmem::allocator<std::pair<const K, V>>>`. */
template <typename T>
class allocator {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_move_assignment = std::true_type;
  using is_always_equal = std::true_type;

  allocator() noexcept = default;
  template <typename U>
  allocator(const allocator<U> &) noexcept {}

  /* Uninitialised memory for `count` objects, aligned for T.  Throws std::bad_array_new_length when
   * they are larger than any block can be, std::bad_alloc without memory. */
  T *allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(T)) {
      detail::fail<std::bad_array_new_length>();
    }
    return static_cast<T *>(detail::allocate(count * sizeof(T), alignof(T)));
  }

  /* Gives it back.  `count` must be that of the call to allocate(). */
  void deallocate(T *objects, std::size_t count) noexcept {
    detail::deallocate(objects, count * sizeof(T), alignof(T));
  }
};

template <typename T, typename U>
bool operator==(const allocator<T> &, const allocator<U> &) noexcept {
  return true;
}

template <typename T, typename U>
bool operator!=(const allocator<T> &, const allocator<U> &) noexcept {
  return false;
}

/* ---- heaps ----------------------------------------------------------------------------------- */

/* Owns a heap of hak_heap_new: its blocks lie in memory of their own, can be freed at once, can
 * have a limit, and the tool shows its figures by its name.  Any thread may allocate in it and free
 * its blocks, by any function that frees hakmem's.  It can be moved; one that was moved from may
 * only be destroyed or assigned to. */
class heap {
 public:
  /* `name` is copied, up to 31 bytes; NULL: "heap N".  Throws std::bad_alloc without memory for its
   * record. */
  explicit heap(const char *name = nullptr) : handle_(hak_heap_new(name)) {
    if (handle_ == nullptr) {
      detail::fail<std::bad_alloc>();
    }
  }
  /* Frees all of its blocks, which must not be used any more: containers in it must be gone.  No
   * other thread may have it in use: then it stays as it is. */
  ~heap() { hak_heap_destroy(handle_); }

  heap(const heap &) = delete;
  heap &operator=(const heap &) = delete;
  heap(heap &&other) noexcept : handle_(other.release()) {}
  heap &operator=(heap &&other) noexcept {
    if (this != &other) {
      hak_heap_destroy(handle_);
      handle_ = other.release();
    }
    return *this;
  }

  /* A block, uninitialised.  On failure, for example at a limit, as everything here: the new
   * handler, then std::bad_alloc. */
  void *allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    return detail::allocate(bytes, alignment, handle_);
  }
  /* A block, uninitialised; NULL on failure, without calling the new handler. */
  void *try_allocate(std::size_t bytes,
                     std::size_t alignment = alignof(std::max_align_t)) noexcept {
    return detail::try_allocate(handle_, bytes, alignment);
  }
  /* Gives one back, with the size and the alignment of its request. */
  void deallocate(void *block, std::size_t bytes,
                  std::size_t alignment = alignof(std::max_align_t)) noexcept {
    detail::deallocate(block, bytes, alignment);
  }

  void set_name(const char *name) noexcept { hak_heap_set_name(handle_, name); }
  void set_tag(std::uint64_t tag) noexcept { hak_heap_set_tag(handle_, tag); }
  /* Refuses blocks that would bring its live bytes above `bytes`; 0: no limit.  False where
   * hak_set_limit returns false. */
  bool set_limit(std::size_t bytes) noexcept { return hak_set_limit(handle_, bytes); }
  hak_figures figures() const noexcept {
    hak_figures now;
    hak_heap_figures(handle_, &now, sizeof now);
    return now;
  }
  /* Frees all of its blocks, which must not be used any more; it may be used again.  False where
   * hak_heap_free_all returns false. */
  bool free_all() noexcept { return hak_heap_free_all(handle_); }

  /* For the functions of hakmem.h; still owned. */
  hak_heap *get() const noexcept { return handle_; }
  /* No longer owned: the caller destroys it. */
  hak_heap *release() noexcept {
    hak_heap *const handle = handle_;
    handle_ = nullptr;
    return handle;
  }

 private:
  hak_heap *handle_;
};

/* During its life `operator new`, malloc and all other allocation functions give the calling thread
 * blocks of the heap; afterwards of the heap in use before (see hak_heap_use for the consequences
 * at the heap's end).  It belongs to its scope: ended by the thread that began it, in the reverse
 * order; so in a coroutine it does not span a suspension.  An exception that leaves the scope lies
 * in the heap, which must outlive its handler. */
class heap_in_use {
 public:
  explicit heap_in_use(const heap &in) : heap_in_use(in.get()) {}
  /* NULL: the thread's own heap, inside a scope of another.  Throws std::bad_alloc where
   * hak_heap_use refuses. */
  explicit heap_in_use(hak_heap *handle) {
    if (!hak_heap_use(handle, &before_)) {
      detail::fail<std::bad_alloc>();
    }
  }
  ~heap_in_use() { hak_heap_use(before_, nullptr); }

  heap_in_use(const heap_in_use &) = delete;
  heap_in_use &operator=(const heap_in_use &) = delete;

 private:
  hak_heap *before_ = nullptr;
};

/* ---- std::pmr -------------------------------------------------------------------------------- */

#if defined(HAKMEM_HAS_MEMORY_RESOURCE)

/* hakmem as a std::pmr::memory_resource, which may stand upstream of others:
 * `std::pmr::monotonic_buffer_resource arena(hakmem::resource())`. */
class memory_resource final : public std::pmr::memory_resource {
 private:
  void *do_allocate(std::size_t bytes, std::size_t alignment) override {
    return detail::allocate(bytes, alignment);
  }

  /* `bytes` and `alignment` must be those of the call to allocate(). */
  void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override {
    detail::deallocate(block, bytes, alignment);
  }

  /* Without run-time type information a resource is equal to itself only, which is safe. */
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
#if defined(__cpp_rtti)
    return dynamic_cast<const memory_resource *>(&other) != nullptr;
#else
    return this == &other;
#endif
  }
};

/* A heap as a std::pmr::memory_resource.  It does not own the heap, which must outlive all
 * blocks allocated here; it stays valid when the heap's owner is moved.  Resources of one heap
 * are equal. */
class heap_resource final : public std::pmr::memory_resource {
 public:
  explicit heap_resource(const heap &in) noexcept : handle_(in.get()) {}
  explicit heap_resource(hak_heap *handle) noexcept : handle_(handle) {}
  hak_heap *get() const noexcept { return handle_; }

 private:
  void *do_allocate(std::size_t bytes, std::size_t alignment) override {
    return detail::allocate(bytes, alignment, handle_);
  }

  void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override {
    detail::deallocate(block, bytes, alignment);
  }

  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
#if defined(__cpp_rtti)
    const auto *same = dynamic_cast<const heap_resource *>(&other);
    return same != nullptr && same->handle_ == handle_;
#else
    return this == &other;
#endif
  }

  hak_heap *handle_;
};

/* One resource, returned by every call.  It is never destroyed: containers in static storage may
 * use it to the end.  To make it the default of std::pmr, call
 * std::pmr::set_default_resource(hakmem::resource()) before the first container. */
inline memory_resource *resource() noexcept {
  alignas(memory_resource) static unsigned char place[sizeof(memory_resource)];
  static memory_resource *const made = ::new (static_cast<void *>(place)) memory_resource;
  return made;
}

#endif

}  // namespace hakmem

#endif
