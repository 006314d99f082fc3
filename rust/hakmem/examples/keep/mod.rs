//! Two functions that keep memory.

#[inline(never)]
pub fn orders(count: usize) -> Vec<Box<[u8; 4096]>> {
    let mut kept = Vec::new();
    for _ in 0..count {
        kept.push(Box::new([1; 4096]));
    }
    kept
}

#[inline(never)]
pub fn names(count: usize) -> Vec<String> {
    let mut kept = Vec::new();
    for number in 0..count {
        kept.push(format!("{number:>1000}"));
    }
    kept
}
