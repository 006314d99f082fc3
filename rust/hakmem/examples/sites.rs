//! Two functions that keep memory, for a look from outside: `hakmem profile PID` names them.
//!
//!     cargo run --example sites
use std::io::{self, BufRead, Write};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

#[inline(never)]
fn keep_orders(count: usize) -> Vec<Box<[u8; 4096]>> {
    let mut kept = Vec::new();
    for _ in 0..count {
        kept.push(Box::new([1; 4096]));
    }
    kept
}

#[inline(never)]
fn keep_names(count: usize) -> Vec<String> {
    let mut kept = Vec::new();
    for number in 0..count {
        kept.push(format!("{number:>1000}"));
    }
    kept
}

fn main() {
    hakmem::profile(hakmem::Sampling::EveryBytes(4096)).expect("nobody refuses");
    let kept = (keep_orders(3000), keep_names(2000));
    println!("{}", std::process::id());
    io::stdout().flush().expect("standard output");
    // Until standard input ends, or says something.
    io::stdin()
        .lock()
        .read_line(&mut String::new())
        .expect("standard input");
    drop(kept);
}
