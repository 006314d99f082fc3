//! Memory goes back.  A program of its own: other tests, at the same time, would take what was freed before it went.

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

#[test]
fn purge_gives_back() {
    drop(vec![1u8; 64 << 20]);
    hakmem::purge_old();
    hakmem::purge();
    let stats = hakmem::stats();
    assert!(stats.totals.purged_bytes >= 64 << 20, "{:?}", stats.totals);
}
