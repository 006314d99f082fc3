//! Two blocks of 64 bytes are given back with the layout of one of 1,000.
use std::alloc::{alloc, dealloc, Layout};
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

fn main() {
    for _ in 0..2 {
        // SAFETY: none; that is the point.
        unsafe {
            let block = black_box(alloc(Layout::from_size_align(64, 8).expect("valid")));
            dealloc(block, Layout::from_size_align(1000, 8).expect("valid"));
        }
    }
}
