//! hakmem, a memory allocator for Linux, as Rust's global allocator.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;
//!
//! fn main() {
//!     let words: Vec<String> = ["in", "hakmem"].map(String::from).to_vec();
//!     assert!(hakmem::owns(words.as_ptr()));
//! }
//! ```
//!
//! Rust says at each deallocation how large the block is, and hakmem compares. Of layouts that cannot be the block's the
//! first is reported as a warning, and the block is freed all the same; with `HAKMEM_HARDEN=1` each ends the program.
//!
//! The tool `hakmem` sees the process from outside: `hakmem why PID` says where its memory is, `hakmem profile PID` which
//! functions hold it. [`stats`], [`purge`] and [`profile`] do from inside what a program itself may want. Options are
//! environment variables (`HAKMEM_HELP=1` lists them). A [`Heap`] is memory apart, with a name, a limit and figures of its own.
//!
//! # Features
//!
//! * `override` (on): the C library's `malloc`, `free` and their relatives, and C++'s operators, are hakmem's too, in the whole
//!   program: native libraries share the heap, its limit and the tool. With `default-features = false` C code keeps the C library's
//!   malloc, and a block must be freed where it came from; both go together in one process. A library that depends on this crate
//!   leaves the choice to the program by that line.
//! * `debug` (off): hakmem with its assertions, for tests.
//!
//! # Platforms
//!
//! Linux on x86-64 and aarch64, glibc or musl, dynamic or static. Elsewhere it does not compile, and says so.
#![warn(missing_docs)]

mod allocator;
mod heap;
mod stats;

pub use allocator::Hakmem;
pub use heap::{name_heap_of_thread, Heap, HeapFigures, HeapInUse, HeapRefused};
pub use stats::{stats, stats_json, Class, Counters, Memory, Stats, Totals};

use std::ffi::CStr;
use std::fmt;

use hakmem_sys as ffi;

/// Gives all free memory back to the operating system, the calling thread's caches included; returns the bytes. Other
/// threads' caches are theirs.
///
/// ```
/// drop(vec![0u8; 1 << 20]);
/// let bytes: usize = hakmem::purge();
/// ```
pub fn purge() -> usize {
    // SAFETY: it takes no pointers, and may be called from any thread.
    unsafe { ffi::hak_purge(true) }
}

/// Gives back what has been free for `HAKMEM_DECAY_MS`, as hakmem does by itself while the program allocates; returns the bytes.
pub fn purge_old() -> usize {
    // SAFETY: as above.
    unsafe { ffi::hak_purge(false) }
}

/// For a thread that is about to wait, such as an event loop: what its caches hold, and its free blocks, are at once for other
/// threads to use.
///
/// ```
/// hakmem::thread_idle();
/// ```
pub fn thread_idle() {
    // SAFETY: as above.
    unsafe { ffi::hak_thread_idle() }
}

/// Whether, and how often, allocations are samples of this process's heap profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// None are; samples of blocks that are still live are kept.
    Off,
    /// At a rate that follows the program: about a thousand a second, for 0.5 % of its processor time.
    Adaptive,
    /// One in so many bytes that are allocated, on average, 64 at least.
    EveryBytes(usize),
}

/// `HAKMEM_PROFILE=never` refuses heap profiles, or there was no memory for hakmem itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileRefused;

impl fmt::Display for ProfileRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("heap profiles are refused: the process was started with HAKMEM_PROFILE=never")
    }
}

impl std::error::Error for ProfileRefused {}

/// Switches this process's heap profile on or off, as `hakmem profile --on` does from outside.
///
/// The calling thread follows at once, any other when it next allocates or frees. The samples, each with its call stack, are in
/// this process's memory: `hakmem profile PID` shows them, also those of a core dump. It stays on until it is switched
/// off, here or by the tool.
///
/// ```
/// # use hakmem::Sampling;
/// hakmem::profile(Sampling::EveryBytes(64 * 1024))?;
/// let suspicious = vec![1u8; 1 << 20];
/// hakmem::profile(Sampling::Off)?;
/// # drop(suspicious);
/// # Ok::<(), hakmem::ProfileRefused>(())
/// ```
pub fn profile(sampling: Sampling) -> Result<(), ProfileRefused> {
    let period_bytes = match sampling {
        Sampling::Off => {
            // SAFETY: it takes nothing, and may be called from any thread.
            unsafe { ffi::hak_profile_stop() };
            return Ok(());
        }
        Sampling::Adaptive => 0,
        Sampling::EveryBytes(bytes) => bytes.max(1),
    };
    // SAFETY: it takes a number, and may be called from any thread.
    if unsafe { ffi::hak_profile_start(period_bytes) } {
        Ok(())
    } else {
        Err(ProfileRefused)
    }
}

/// Whether `pointer` lies in memory that hakmem uses for blocks now: in a live block, or in a free one beside live ones. Any
/// value will do.
pub fn owns<T: ?Sized>(pointer: *const T) -> bool {
    // SAFETY: nothing is read there.
    unsafe { ffi::hak_owns(pointer.cast()) }
}

/// How many bytes a block that is asked for with `size` has: what a buffer may as well ask for.
///
/// ```
/// assert!(hakmem::good_size(1000) >= 1000);
/// ```
pub fn good_size(size: usize) -> usize {
    // SAFETY: a number goes in, a number comes out.
    unsafe { ffi::hak_good_size(size) }
}

/// "major.minor.patch" of the library.
pub fn version() -> &'static str {
    // SAFETY: a constant text of ASCII that ends with a NUL.
    let text = unsafe { CStr::from_ptr(ffi::hak_version()) };
    text.to_str().unwrap_or("")
}
