//! The allocator: each method is one call into C, where the work is.
use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use hakmem_sys as ffi;

/// The allocator; a program has one process-wide heap, whatever there are of these.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;
/// # fn main() {}
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Hakmem;

/// Whether every block of `size` bytes has the alignment: C's malloc says nothing of alignments.
#[inline]
const fn is_natural(size: usize, alignment: usize) -> bool {
    alignment <= 8 || (alignment <= 16 && size > 8)
}

impl Hakmem {
    /// Bytes that may be used at a block: at least what it was asked for with. It is freed with the layout that it was asked
    /// for with all the same.
    ///
    /// # Safety
    ///
    /// `block` is live, and came from this allocator.
    pub unsafe fn usable_size(&self, block: *const u8) -> usize {
        ffi::hak_malloc_usable_size(block.cast())
    }

    /// In place, else by a new block.
    #[cold]
    unsafe fn realloc_aligned(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= layout.size() && !ffi::hak_expand(block.cast(), size).is_null() {
            return block;
        }
        let moved: *mut u8 = ffi::hak_aligned_alloc(layout.align(), size).cast();
        if !moved.is_null() {
            ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
            self.dealloc(block, layout);
        }
        moved
    }
}

// SAFETY: hakmem's blocks are as large and aligned as was asked for, no two live ones overlap, and none moves by itself. No
// function here panics, or unwinds. Whatever is the allocator of a block's layout (natural or not), its free is the
// same function of the layout: `realloc` keeps to that.
unsafe impl GlobalAlloc for Hakmem {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_natural(layout.size(), layout.align()) {
            ffi::hak_malloc(layout.size()).cast()
        } else {
            ffi::hak_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_natural(layout.size(), layout.align()) {
            ffi::hak_free_sized(block.cast(), layout.size());
        } else {
            ffi::hak_free_aligned_sized(block.cast(), layout.align(), layout.size());
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // Of more than that C's calloc also zeroes what the block has beyond its size.
        const SMALL_BYTES: usize = 32 << 10;
        if is_natural(layout.size(), layout.align()) && layout.size() <= SMALL_BYTES {
            ffi::hak_calloc(1, layout.size()).cast()
        } else {
            ffi::hak_aligned_calloc(layout.align(), 1, layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let alignment = layout.align();
        if is_natural(layout.size(), alignment) && is_natural(size, alignment) {
            // C's realloc to 0 bytes frees, which is not what is asked for here.
            ffi::hak_realloc(block.cast(), size.max(1)).cast()
        } else {
            self.realloc_aligned(block, layout, size)
        }
    }
}
