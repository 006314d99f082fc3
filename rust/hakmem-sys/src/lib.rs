//! hakmem's C functions, from `hakmem/hakmem.h`, whose sources this crate compiles and links.
//!
//! Rust programs use the crate [`hakmem`](https://docs.rs/hakmem), which is an allocator of Rust's over these.
//!
//! Rules that hold for every function here, unless it says otherwise: sizes and alignments are in bytes, and sizes above
//! `isize::MAX` are refused; every function may be called from any thread at any time, but not from a signal handler; a
//! block may be freed by any thread; on failure a function that allocates returns null and sets `errno` to ENOMEM, and
//! the block that it was given stays valid and unchanged.
//!
//! # Features
//!
//! * `override` replaces the C library's `malloc`, `free` and their relatives, and C++'s `operator new` and `delete`, in
//!   the whole program; the crate `hakmem` asks for it by default. Without it all names begin with `hak_`, and the C library's
//!   malloc serves C code as before.
//! * `debug` compiles hakmem with its assertions: for tests.
#![no_std]
#![warn(missing_docs)]

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    target_endian = "little"
)))]
compile_error!(
    "hakmem is for Linux on 64-bit little-endian processors (x86-64, aarch64): use it under \
     [target.'cfg(all(target_os = \"linux\", target_pointer_width = \"64\"))'.dependencies], and the system's allocator \
     elsewhere"
);

use core::ffi::c_void;

/// C's `int`.
#[allow(non_camel_case_types)]
pub type c_int = i32;

/// C's `char`, which has a sign on some processors.
#[cfg(target_arch = "x86_64")]
#[allow(non_camel_case_types)]
pub type c_char = i8;
/// C's `char`, which has a sign on some processors.
#[cfg(not(target_arch = "x86_64"))]
#[allow(non_camel_case_types)]
pub type c_char = u8;

/// A heap of the program's own; only pointers to it are of use.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct hak_heap {
    nothing: [u8; 0],
}

/// Of a heap's name, with its NUL.
pub const HEAP_NAME_BYTES: usize = 32;

/// Figures of a heap at one moment.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct hak_figures {
    /// In blocks, with what their sizes were rounded up to; of a thread's heap also what it keeps for reuse.
    pub live_bytes: u64,
    /// Of a thread's heap 0: not counted.
    pub live_blocks: u64,
    /// The most that `live_bytes` has been; of a thread's heap 0.
    pub peak_bytes: u64,
    /// 0: none.
    pub limit_bytes: u64,
    /// Requests that the limit has refused.
    pub refusals: u64,
    /// Blocks that it has given out so far; of a thread's heap 0.
    pub allocations: u64,
    /// The program's number for it.
    pub tag: u64,
    /// Ends with a NUL.
    pub name: [c_char; HEAP_NAME_BYTES],
}

include!(concat!(env!("OUT_DIR"), "/figures.rs"));

// tests/packages/test_crate.py compares these with the header, and that all of it is here.
extern "C" {
    /// A block of at least `size` bytes, uninitialised, aligned to 16 (to 8 when `size` is 8 or less). Of 0 bytes it is
    /// a unique block that must be freed.
    pub fn hak_malloc(size: usize) -> *mut c_void;
    /// A zeroed block for `count` objects of `size` bytes; null when their product overflows.
    pub fn hak_calloc(count: usize, size: usize) -> *mut c_void;
    /// Resizes a block, which may move. Of null it is `hak_malloc`; to 0 bytes it frees the block and returns null.
    pub fn hak_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    /// As `hak_realloc` to `count * size` bytes; an overflowing product is refused.
    pub fn hak_reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void;
    /// Gives a block back; null is allowed, errno is preserved. An invalid or doubly freed pointer ends the program with
    /// one line on standard error.
    pub fn hak_free(block: *mut c_void);
    /// As `hak_free`, of a block that was asked for, or last resized to, with this size. Of a size that the block cannot have, the
    /// first is reported as a warning, and the block is freed all the same; with `HAKMEM_HARDEN=1` each ends the program.
    pub fn hak_free_sized(block: *mut c_void, size: usize);
    /// The same of one with an alignment.
    pub fn hak_free_aligned_sized(block: *mut c_void, alignment: usize, size: usize);
    /// A block whose address is a multiple of `alignment`; null and EINVAL unless that is a power of two.
    pub fn hak_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    /// The same, zeroed, for `count` objects of `size` bytes.
    pub fn hak_aligned_calloc(alignment: usize, count: usize, size: usize) -> *mut c_void;
    /// Stores an aligned block in `*out` and returns 0, or returns EINVAL or ENOMEM and leaves it alone.
    pub fn hak_posix_memalign(out: *mut *mut c_void, alignment: usize, size: usize) -> c_int;
    /// As `hak_aligned_alloc`, but an alignment that is no power of two is rounded up to one.
    pub fn hak_memalign(alignment: usize, size: usize) -> *mut c_void;
    /// A block aligned to the page size.
    pub fn hak_valloc(size: usize) -> *mut c_void;
    /// The same, of whole pages.
    pub fn hak_pvalloc(size: usize) -> *mut c_void;
    /// Bytes that may be used at a block; 0 for null.
    pub fn hak_malloc_usable_size(block: *const c_void) -> usize;
    /// The usable size that `hak_malloc(size)` would give.
    pub fn hak_good_size(size: usize) -> usize;
    /// As `hak_realloc`, and every byte beyond the old usable size reads as zero.
    pub fn hak_rezalloc(block: *mut c_void, size: usize) -> *mut c_void;
    /// As `hak_malloc`, for a site of the caller's choice: Large and Big blocks are cached by it.
    pub fn hak_malloc_site(size: usize, site: u32) -> *mut c_void;
    /// Resizes a block without moving it, or returns null when that is impossible.
    pub fn hak_expand(block: *mut c_void, size: usize) -> *mut c_void;
    /// Gives free memory back to the system: what is old, or with `force` all; returns the bytes.
    pub fn hak_purge(force: bool) -> usize;
    /// For each block the percentage of its slab that is free, 0 where moving it gives nothing back; returns how many are worth it.
    pub fn hak_worth_moving(blocks: *const *mut c_void, count: usize, answers: *mut u8) -> usize;
    /// From here on the thread's blocks come from dense slabs, and its frees go past its caches; false where it cannot be had.
    pub fn hak_move_begin() -> bool;
    /// Ends it.
    pub fn hak_move_end();
    /// For a thread that is about to wait: what its caches hold, and its free blocks, are for other threads to use.
    pub fn hak_thread_idle();
    /// Switches this process's heap profile on, with a sample in about `period_bytes` allocated bytes (0: adapts). False
    /// when it was refused.
    pub fn hak_profile_start(period_bytes: usize) -> bool;
    /// Switches it off.
    pub fn hak_profile_stop();
    /// Whether a pointer lies in memory that hakmem uses for blocks.
    pub fn hak_owns(pointer: *const c_void) -> bool;
    /// A new heap; its name (up to 31 bytes, copied) is what the tool shows; null: "heap N". Null without memory for its
    /// record.
    pub fn hak_heap_new(name: *const c_char) -> *mut hak_heap;
    /// The calling thread's own heap, which `hak_malloc` uses, to give it a name and a tag; it ends with the thread.
    pub fn hak_heap_of_thread() -> *mut hak_heap;
    /// The heap that was made by `hak_heap_new` and that a live block is in, or null.
    pub fn hak_heap_of(block: *const c_void) -> *mut hak_heap;
    /// As `hak_malloc`, with a block of this heap; null too when the heap's limit has no room for it.
    pub fn hak_heap_malloc(heap: *mut hak_heap, size: usize) -> *mut c_void;
    /// As `hak_calloc`, likewise.
    pub fn hak_heap_calloc(heap: *mut hak_heap, count: usize, size: usize) -> *mut c_void;
    /// As `hak_aligned_alloc`, likewise.
    pub fn hak_heap_aligned_alloc(
        heap: *mut hak_heap,
        alignment: usize,
        size: usize,
    ) -> *mut c_void;
    /// As `hak_realloc`, and the block is this heap's afterwards, wherever it was before.
    pub fn hak_heap_realloc(heap: *mut hak_heap, block: *mut c_void, size: usize) -> *mut c_void;
    /// From now on `hak_malloc` and its relatives give the calling thread blocks of this heap; null: of its own. `*before`
    /// (which may be null) becomes the heap that was in use until now. False when it is refused.
    pub fn hak_heap_use(heap: *mut hak_heap, before: *mut *mut hak_heap) -> bool;
    /// What the tool shows it as.
    pub fn hak_heap_set_name(heap: *mut hak_heap, name: *const c_char);
    /// A number of the program's own.
    pub fn hak_heap_set_tag(heap: *mut hak_heap, tag: u64);
    /// Refuses blocks that would bring the heap's live bytes above `bytes`; 0: no limit. False for a thread's heap.
    pub fn hak_set_limit(heap: *mut hak_heap, bytes: usize) -> bool;
    /// Writes as many bytes of its figures as the caller's struct has.
    pub fn hak_heap_figures(heap: *mut hak_heap, figures: *mut hak_figures, figures_bytes: usize);
    /// Frees all blocks of the heap, which nobody may use any more. False for a thread's heap.
    pub fn hak_heap_free_all(heap: *mut hak_heap) -> bool;
    /// The same, and the heap is gone; null is allowed. False while another thread uses it.
    pub fn hak_heap_destroy(heap: *mut hak_heap) -> bool;
    /// "major.minor.patch", a constant.
    pub fn hak_version() -> *const c_char;
    /// Writes a report to a file descriptor.
    pub fn hak_stats_print(fd: c_int);
    /// Writes the same figures as JSON, NUL-terminated; returns the length that the whole text has without its NUL.
    pub fn hak_stats_json(buffer: *mut c_char, buffer_bytes: usize) -> usize;
}
