//! A program on the packed crate: what it found is printed as lines `name value`; then it waits, with memory, for a look from
//! outside.
use std::io::{self, BufRead, Write};
use std::os::raw::c_void;
use std::process::Command;
use std::thread;

#[path = "../../../rust/hakmem/examples/keep/mod.rs"]
mod keep;

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
}

/// Whether the C library's malloc is hakmem.
fn c_is_ours() -> bool {
    // SAFETY: the C library's functions, as they are meant.
    unsafe {
        let block = malloc(100);
        let is_ours = hakmem::owns(block);
        free(block);
        is_ours
    }
}

/// Blocks are made while others fork: both allocators have to be whole in the child.
fn children_end_well() -> bool {
    let maker = thread::spawn(|| (0..20_000).map(|size| vec![1u8; size % 3000].len()).sum::<usize>());
    let all_well = (0..8).all(|_| {
        let child = Command::new("/bin/sh").args(["-c", "exit 0"]).status();
        child.expect("a child").success()
    });
    maker.join().expect("no panic") > 0 && all_well
}

fn main() {
    let block = vec![1u8; 100];
    println!("version {}", hakmem::version());
    println!("rust {}", hakmem::owns(block.as_ptr()));
    println!("c {}", c_is_ours());
    println!("children {}", children_end_well());
    println!("refills {}", hakmem::stats().counters.refills);
    drop(vec![1u8; 32 << 20]);
    println!("purged {}", hakmem::purge() + hakmem::stats().totals.purged_bytes as usize);
    let is_on = hakmem::profile(hakmem::Sampling::EveryBytes(4096)).is_ok();
    let kept = (keep::orders(3000), keep::names(2000));
    println!("profile {is_on}");
    println!("ready {}", std::process::id());
    io::stdout().flush().expect("standard output");
    io::stdin().lock().read_line(&mut String::new()).expect("standard input");
    drop(kept);
}
