//! Two functions that keep memory, for a look from outside: `hakmem profile PID` names them.
//!
//!     cargo run --example sites
mod keep;

use std::io::{self, BufRead, Write};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

fn main() {
    hakmem::profile(hakmem::Sampling::EveryBytes(4096)).expect("nobody refuses");
    let kept = (keep::orders(3000), keep::names(2000));
    println!("{}", std::process::id());
    io::stdout().flush().expect("standard output");
    // Until standard input ends, or says something.
    io::stdin()
        .lock()
        .read_line(&mut String::new())
        .expect("standard input");
    drop(kept);
}
