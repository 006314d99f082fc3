//! The load of leak.cc in Rust: twelve sites that leak in known shares, among blocks that live shortly.
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

#[inline(always)]
fn leak(bytes: usize, count: usize) {
    for _ in 0..count {
        std::mem::forget(black_box(vec![1u8; bytes]));
    }
}

macro_rules! sites {
    ($($name:ident $bytes:literal $count:literal)*) => {
        $(#[inline(never)] fn $name() { leak($bytes, $count); black_box(()); })*
        fn leak_all() { $($name();)* }
    };
}

sites! {
    site_orders 64 1600
    site_sessions 256 320
    site_cache 4096 16
    site_images 16384 3
    site_index 128 300
    site_names 32 960
    site_logs 1024 24
    site_parse 512 38
    site_frames 8192 2
    site_tasks 96 128
    site_stats 48 128
    site_misc 80 48
}

#[inline(never)]
fn churn(rounds: usize) {
    for i in 0..rounds {
        let mut table = BTreeMap::new();
        for key in 0..40usize {
            table.insert(key, "x".repeat(20 + (i + key * 7) % 200));
        }
        let rows: Vec<Box<[u32]>> = (0..40).map(|row| vec![1; 4 + (row * 5 + i) % 60].into()).collect();
        black_box((&table, &rows));
    }
}

#[inline(never)]
fn turn() {
    leak_all();
    churn(120);
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let amount: f64 = words[2].parse().expect("an amount");
    if words[1] == "work" {
        for _ in 0..amount as usize {
            turn();
        }
        return;
    }
    let start = Instant::now();
    for i in 0.. {
        if start.elapsed().as_secs_f64() >= amount {
            break;
        }
        turn();
        if i == 0 {
            println!("leaking");
            std::io::stdout().flush().expect("standard output");
        }
        let next = Duration::from_millis(50 * (i + 1));
        std::thread::sleep(next.saturating_sub(start.elapsed()));
    }
}
