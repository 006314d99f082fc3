//! The crate's functions, in a program whose allocator hakmem is.
use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;

use hakmem::Sampling;

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

#[test]
fn it_serves() {
    let block = "x".repeat(100);
    assert!(hakmem::owns(block.as_ptr()));
    let on_stack = 1;
    assert!(!hakmem::owns(&on_stack));
    assert_eq!(hakmem::version(), env!("CARGO_PKG_VERSION"));
    assert!(hakmem::good_size(1000) >= 1000);
    // SAFETY: a live block.
    assert!(unsafe { ALLOCATOR.usable_size(block.as_ptr()) } >= 100);
}

#[test]
fn stats_tell_what_is_there() {
    let blocks: Vec<Vec<u8>> = (0..64).map(|_| vec![1u8; 3 << 20]).collect();
    let after = hakmem::stats();
    assert_eq!(after.version, hakmem::version());
    assert!(after.block_bytes() >= 192 << 20);
    assert!(after.totals.unstable_big_live_blocks >= 64);
    assert!(after.totals.committed_bytes >= 192 << 20);
    assert!(after
        .classes
        .windows(2)
        .all(|pair| pair[0].block_bytes < pair[1].block_bytes));
    drop(blocks);
}

/// One in 64 bytes is nearly every block.
#[test]
fn profile_is_switched() {
    hakmem::profile(Sampling::EveryBytes(64)).expect("nobody refuses");
    let blocks: Vec<Vec<u8>> = (0..1000).map(|_| vec![1u8; 1000]).collect();
    let sampled = hakmem::stats().totals.sampled_live_bytes;
    hakmem::profile(Sampling::Off).expect("nobody refuses");
    assert!(sampled >= 900 * 1000, "{sampled}");
    drop(blocks);
    hakmem::profile(Sampling::Adaptive).expect("nobody refuses");
    hakmem::profile(Sampling::Off).expect("nobody refuses");
}

/// Blocks go from thread to thread, grow there and are freed by others.
#[test]
fn blocks_change_threads() {
    let (sender, receiver) = mpsc::channel::<HashMap<u64, String>>();
    let makers: Vec<_> = (0..4u64)
        .map(|maker| {
            let sender = sender.clone();
            thread::spawn(move || {
                for turn in 0..50 {
                    let table =
                        (0..100).map(|key| (key, "x".repeat((key * maker + turn) as usize % 300)));
                    sender.send(table.collect()).expect("a receiver");
                }
            })
        })
        .collect();
    drop(sender);
    let mut strings = 0;
    for mut table in receiver {
        table.insert(1000, "more".to_owned());
        strings += table.len();
    }
    makers
        .into_iter()
        .for_each(|maker| maker.join().expect("no panic"));
    assert_eq!(strings, 4 * 50 * 101);
}
