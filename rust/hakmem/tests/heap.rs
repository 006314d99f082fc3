//! Heaps of the program's own.
use std::alloc::Layout;
use std::ptr::NonNull;
use std::thread;

use hakmem::{name_heap_of_thread, Heap};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

fn layout(size: usize, alignment: usize) -> Layout {
    Layout::from_size_align(size, alignment).unwrap()
}

/// A pointer that goes to another thread.
struct Sent(NonNull<u8>);
// SAFETY: of a block, which any thread may free.
unsafe impl Send for Sent {}

#[test]
fn every_layout_is_served_and_freed() {
    let heap = Heap::new("layouts").unwrap();
    for alignment in [1, 2, 8, 16, 64, 4096, 1 << 17] {
        for size in [0, 1, 8, 9, 100, 5000, 70_000, 2_000_000] {
            let one = layout(size, alignment);
            let block = heap.allocate(one).unwrap();
            assert_eq!(block.as_ptr() as usize % alignment, 0);
            // SAFETY: a live block of so many bytes; freed once, with its layout.
            unsafe {
                block.as_ptr().write_bytes(1, size);
                assert_eq!(
                    hakmem_sys::hak_heap_of(block.as_ptr().cast()),
                    heap.as_ptr()
                );
                heap.deallocate(block, one);
            }
        }
    }
    let figures = heap.figures();
    assert_eq!((figures.live_bytes, figures.live_blocks), (0, 0));
    assert_eq!(figures.allocations, 7 * 8);
    assert!(figures.peak_bytes >= 2_000_000);
}

#[test]
fn a_limit_refuses_and_figures_tell() {
    let heap = Heap::new("limited").unwrap();
    heap.set_tag(7);
    heap.set_limit(1 << 20);
    let mut given = 0;
    while heap.allocate(layout(4096, 8)).is_some() {
        given += 1;
    }
    let figures = heap.figures();
    assert_eq!(given, 256);
    assert_eq!((figures.name.as_str(), figures.tag), ("limited", 7));
    assert_eq!((figures.limit_bytes, figures.refusals), (Some(1 << 20), 1));
    assert_eq!((figures.live_bytes, figures.live_blocks), (1 << 20, 256));
    // SAFETY: nobody has kept one.
    unsafe { heap.free_all() };
    assert_eq!(heap.figures().live_bytes, 0);
    assert!(heap.allocate(layout(4096, 8)).is_some());
    heap.set_limit(0);
    assert_eq!(heap.figures().limit_bytes, None);
}

#[test]
fn blocks_are_freed_by_other_threads() {
    let heap = Heap::new("shared").unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let one = layout(100, 8);
                let blocks: Vec<Sent> = (0..1000)
                    .map(|_| Sent(heap.allocate(one).unwrap()))
                    .collect();
                let heap = &heap;
                scope.spawn(move || {
                    for block in blocks {
                        // SAFETY: each is freed here, once.
                        unsafe { heap.deallocate(block.0, one) };
                    }
                });
            });
        }
    });
    let figures = heap.figures();
    assert_eq!((figures.live_blocks, figures.allocations), (0, 4000));
}

#[test]
fn names_are_cut_between_characters() {
    let heap = Heap::new(&"é".repeat(20)).unwrap();
    assert_eq!(heap.figures().name, "é".repeat(15));
    heap.set_name("a\0b");
    assert_eq!(heap.figures().name, "a");
    assert_eq!(format!("{heap:?}"), "Heap(\"a\")");
}

#[test]
fn the_report_has_them() {
    let _heap = Heap::new("\"odd\" ]},{").unwrap();
    name_heap_of_thread("tests", 42).unwrap();
    let json = hakmem::stats_json();
    assert!(json.contains(r#""name":"\u0022odd\u0022 ]},{""#), "{json}");
    assert!(
        json.contains(r#""name":"tests","kind":"thread","tag":42"#),
        "{json}"
    );
    // What the reader makes of the classes before them is the same.
    let sizes: Vec<u64> = hakmem::stats()
        .classes
        .iter()
        .map(|class| class.block_bytes)
        .collect();
    assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{sizes:?}");
}

fn heap_of<T>(value: &T) -> *mut hakmem_sys::hak_heap {
    let pointer: *const T = value;
    // SAFETY: any pointer will do.
    unsafe { hakmem_sys::hak_heap_of(pointer.cast()) }
}

#[test]
fn in_use_the_global_allocator_gives_its_blocks() {
    let first = Heap::new("first").unwrap();
    let second = Heap::new("second").unwrap();
    let mut grown = vec![1u8; 100];
    {
        // SAFETY: all that is allocated here is dropped before its heap.
        let _outer = unsafe { first.in_use() }.unwrap();
        assert_eq!(heap_of(Box::new(1).as_ref()), first.as_ptr());
        {
            // SAFETY: as above.
            let _inner = unsafe { second.in_use() }.unwrap();
            assert_eq!(heap_of(Box::new(1).as_ref()), second.as_ptr());
            grown.resize(100_000, 2);
            assert!(heap_of(&grown[0]).is_null());
        }
        assert_eq!(heap_of(Box::new([0u8; 5000]).as_ref()), first.as_ptr());
    }
    assert!(heap_of(Box::new(1).as_ref()).is_null());
    assert_eq!(second.figures().live_blocks, 0);
}
