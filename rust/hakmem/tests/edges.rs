//! What a program may ask for and no program should: nothing panics, nothing is lost.
use std::alloc::{GlobalAlloc, Layout};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

fn layout(size: usize, alignment: usize) -> Layout {
    Layout::from_size_align(size, alignment).expect("a valid layout")
}

#[test]
fn no_bytes() {
    for alignment in [1, 16, 64, 4096] {
        let nothing = layout(0, alignment);
        // SAFETY: GlobalAlloc promises nothing for no bytes; hakmem gives a block of its own.
        unsafe {
            let first = ALLOCATOR.alloc(nothing);
            let second = ALLOCATOR.alloc_zeroed(nothing);
            assert!(!first.is_null() && !second.is_null() && first != second);
            assert_eq!(first as usize % alignment, 0);
            let grown = ALLOCATOR.realloc(first, nothing, 100);
            let shrunk = ALLOCATOR.realloc(grown, layout(100, alignment), 0);
            assert!(!shrunk.is_null());
            ALLOCATOR.dealloc(shrunk, nothing);
            ALLOCATOR.dealloc(second, nothing);
        }
    }
}

#[test]
fn impossible_requests_are_null() {
    let most = isize::MAX as usize;
    for (size, alignment) in [
        (most, 1),
        (most - 15, 16),
        (most - 4095, 4096),
        (1, 1 << 62),
        (1 << 62, 1 << 61),
    ] {
        // SAFETY: nothing is done with what comes.
        unsafe {
            assert!(ALLOCATOR.alloc(layout(size, alignment)).is_null());
            assert!(ALLOCATOR.alloc_zeroed(layout(size, alignment)).is_null());
            let block = ALLOCATOR.alloc(layout(100, 16));
            block.write_bytes(7, 100);
            assert!(ALLOCATOR
                .realloc(block, layout(100, 16), most - 15)
                .is_null());
            assert!(
                (0..100).all(|place| block.add(place).read() == 7),
                "it stays what it was"
            );
            ALLOCATOR.dealloc(block, layout(100, 16));
        }
    }
}

#[test]
fn alignments_up_to_a_gibibyte() {
    for shift in 0..=30 {
        for size in [1, 100, 5000, 70_000, 1_200_000] {
            let asked = layout(size, 1 << shift);
            // SAFETY: a live block, of this layout.
            unsafe {
                let block = ALLOCATOR.alloc(asked);
                assert!(
                    !block.is_null() && block as usize % asked.align() == 0,
                    "{asked:?}"
                );
                block.write_bytes(1, size);
                let zeroed = ALLOCATOR.alloc_zeroed(asked);
                assert!(
                    zeroed as usize % asked.align() == 0
                        && (0..size).all(|place| zeroed.add(place).read() == 0)
                );
                let grown = ALLOCATOR.realloc(block, asked, size * 3);
                assert!(grown as usize % asked.align() == 0, "{asked:?} grown");
                assert!((0..size).all(|place| grown.add(place).read() == 1));
                ALLOCATOR.dealloc(grown, layout(size * 3, asked.align()));
                ALLOCATOR.dealloc(zeroed, asked);
            }
        }
    }
}

/// A few pages of 4 GiB are touched, aligned or not.
#[test]
fn zeroed_pages_are_not_written() {
    for alignment in [1, 64, 1 << 16] {
        let before = resident_bytes();
        let huge = layout(4 << 30, alignment);
        // SAFETY: a live block, of this layout.
        unsafe {
            let block = ALLOCATOR.alloc_zeroed(huge);
            if block.is_null() {
                return; // a machine with strict overcommit
            }
            assert_eq!(block.add(1 << 30).read(), 0);
            assert!(
                resident_bytes() < before + (64 << 20),
                "alignment {alignment}"
            );
            ALLOCATOR.dealloc(block, huge);
        }
    }
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}
