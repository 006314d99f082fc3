//! Heaps of the program's own.
use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use hakmem_sys as ffi;

/// A heap whose blocks lie in memory of their own: all of them can be freed at once, it can have a limit, and the tool tells
/// its figures by its name (`hakmem stat`, `why`, `export`). The global allocator uses it only where it is told to
/// ([`Heap::in_use`]).
///
/// Any thread may allocate in it and free its blocks. When it is dropped, all of its blocks are freed; while another thread
/// has it in use it stays as it is.
///
/// ```
/// use std::alloc::Layout;
///
/// let cache = hakmem::Heap::new("cache")?;
/// cache.set_limit(64 << 20);
/// let layout = Layout::array::<u64>(100).unwrap();
/// let block = cache.allocate(layout).expect("the limit has room for it");
/// assert!(cache.figures().live_bytes >= 800);
/// // SAFETY: it is live, came from this heap with this layout, and is not used any more.
/// unsafe { cache.deallocate(block, layout) };
/// # Ok::<(), hakmem::HeapRefused>(())
/// ```
pub struct Heap {
    handle: NonNull<ffi::hak_heap>,
}

// SAFETY: hakmem's functions on a heap may be called from any thread, several at once.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

/// There was no memory for the heap's record, or for the thread's own heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapRefused;

impl fmt::Display for HeapRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for another heap")
    }
}

impl std::error::Error for HeapRefused {}

/// Figures of a heap at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapFigures {
    /// As the tool shows it.
    pub name: String,
    /// The program's number for it.
    pub tag: u64,
    /// In live blocks, with what their sizes were rounded up to.
    pub live_bytes: u64,
    /// Live blocks.
    pub live_blocks: u64,
    /// The most that `live_bytes` has been.
    pub peak_bytes: u64,
    /// `None`: no limit.
    pub limit_bytes: Option<u64>,
    /// Requests that the limit has refused.
    pub refusals: u64,
    /// Blocks that it has given out.
    pub allocations: u64,
}

/// As C wants it: up to the first NUL, and no character cut.
fn c_name(name: &str) -> [u8; ffi::HEAP_NAME_BYTES] {
    let mut bytes = [0; ffi::HEAP_NAME_BYTES];
    let whole = name.split('\0').next().unwrap_or("");
    let mut length = whole.len().min(ffi::HEAP_NAME_BYTES - 1);
    while !whole.is_char_boundary(length) {
        length -= 1;
    }
    bytes[..length].copy_from_slice(&whole.as_bytes()[..length]);
    bytes
}

/// Whether every block of `size` bytes has the alignment.
const fn is_natural(layout: Layout) -> bool {
    layout.align() <= 8 || (layout.align() <= 16 && layout.size() > 8)
}

impl Heap {
    /// A new heap; of the name up to 31 bytes are kept.
    pub fn new(name: &str) -> Result<Heap, HeapRefused> {
        let name = c_name(name);
        // SAFETY: a text that ends with a NUL, and is copied.
        let handle = unsafe { ffi::hak_heap_new(name.as_ptr().cast::<ffi::c_char>()) };
        NonNull::new(handle)
            .map(|handle| Heap { handle })
            .ok_or(HeapRefused)
    }

    /// What the tool shows it as from now on.
    pub fn set_name(&self, name: &str) {
        let name = c_name(name);
        // SAFETY: the heap is there as long as this; the text ends with a NUL, and is copied.
        unsafe { ffi::hak_heap_set_name(self.handle.as_ptr(), name.as_ptr().cast::<ffi::c_char>()) }
    }

    /// A number of the program's own, such as a tenant's.
    pub fn set_tag(&self, tag: u64) {
        // SAFETY: as above.
        unsafe { ffi::hak_heap_set_tag(self.handle.as_ptr(), tag) }
    }

    /// Refuses blocks that would bring the heap's live bytes above `bytes`; 0: no limit. What lives already stays.
    pub fn set_limit(&self, bytes: usize) {
        // SAFETY: as above.
        unsafe { ffi::hak_set_limit(self.handle.as_ptr(), bytes) };
    }

    /// A block, uninitialised; `None` when there is no memory, or the limit has no room for it. It lives until it is
    /// deallocated, or all blocks are freed.
    pub fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let heap = self.handle.as_ptr();
        // SAFETY: the heap is there as long as this; the alignment is a power of two.
        let block = unsafe {
            if is_natural(layout) {
                ffi::hak_heap_malloc(heap, layout.size())
            } else {
                ffi::hak_heap_aligned_alloc(heap, layout.align(), layout.size())
            }
        };
        NonNull::new(block.cast())
    }

    /// Gives a block back.
    ///
    /// # Safety
    ///
    /// `block` is live, came from a heap's `allocate` with this layout, and is not used any more.
    pub unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if is_natural(layout) {
            ffi::hak_free_sized(block.as_ptr().cast(), layout.size());
        } else {
            ffi::hak_free_aligned_sized(block.as_ptr().cast(), layout.align(), layout.size());
        }
    }

    /// As long as the result lives, hakmem as the global allocator gives the calling thread blocks of this heap; then of what
    /// was in use before. So the memory of a request, a tenant or a plug-in is told apart and limited without a change to its
    /// code.
    ///
    /// ```
    /// #[global_allocator]
    /// static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;
    ///
    /// let tenant = hakmem::Heap::new("tenant")?;
    /// let answer = {
    ///     // SAFETY: what is allocated meanwhile is gone before the heap is.
    ///     let _use = unsafe { tenant.in_use() }?;
    ///     vec![0u8; 1000]
    /// };
    /// assert!(tenant.figures().live_bytes >= 1000);
    /// drop(answer);
    /// # Ok::<(), hakmem::HeapRefused>(())
    /// ```
    ///
    /// # Safety
    ///
    /// Nothing that is allocated meanwhile is used any more when the heap is dropped or emptied: also not what libraries keep
    /// (buffers of standard output, thread-local values, a panic on its way). Several such results of one thread are dropped
    /// in the reverse order.
    pub unsafe fn in_use(&self) -> Result<HeapInUse<'_>, HeapRefused> {
        let mut before = std::ptr::null_mut();
        if !ffi::hak_heap_use(self.handle.as_ptr(), &mut before) {
            return Err(HeapRefused);
        }
        Ok(HeapInUse {
            before,
            heap: PhantomData,
        })
    }

    /// Frees all of its blocks; the heap may be used again.
    ///
    /// # Safety
    ///
    /// None of them is used any more.
    pub unsafe fn free_all(&self) {
        ffi::hak_heap_free_all(self.handle.as_ptr());
    }

    /// Its figures now.
    pub fn figures(&self) -> HeapFigures {
        let mut now = ffi::hak_figures::default();
        let bytes = std::mem::size_of_val(&now);
        // SAFETY: a struct and its size; the heap is there as long as this.
        unsafe { ffi::hak_heap_figures(self.handle.as_ptr(), &mut now, bytes) };
        let name = now.name.map(|sign| sign as u8);
        let length = name
            .iter()
            .position(|sign| *sign == 0)
            .unwrap_or(name.len());
        HeapFigures {
            name: String::from_utf8_lossy(&name[..length]).into_owned(),
            tag: now.tag,
            live_bytes: now.live_bytes,
            live_blocks: now.live_blocks,
            peak_bytes: now.peak_bytes,
            limit_bytes: Some(now.limit_bytes).filter(|limit| *limit != 0),
            refusals: now.refusals,
            allocations: now.allocations,
        }
    }

    /// For the functions of `hakmem-sys`; still owned.
    pub fn as_ptr(&self) -> *mut ffi::hak_heap {
        self.handle.as_ptr()
    }
}

/// A heap is in use on this thread ([`Heap::in_use`]) as long as this lives.
#[must_use = "the heap is in use as long as this lives"]
pub struct HeapInUse<'heap> {
    before: *mut ffi::hak_heap,
    heap: PhantomData<&'heap Heap>,
}

impl Drop for HeapInUse<'_> {
    fn drop(&mut self) {
        // SAFETY: what was in use before is there, as whoever began that has not ended it.
        unsafe { ffi::hak_heap_use(self.before, std::ptr::null_mut()) };
    }
}

impl fmt::Debug for HeapInUse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeapInUse")
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: a live block of it is a raw pointer, which nobody may use without knowing that it lives.
        unsafe { ffi::hak_heap_destroy(self.handle.as_ptr()) };
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Heap").field(&self.figures().name).finish()
    }
}

/// Gives the calling thread's own heap, which the global allocator uses, a name and a tag: as long as the thread lives, the tool
/// shows them beside it.
pub fn name_heap_of_thread(name: &str, tag: u64) -> Result<(), HeapRefused> {
    let name = c_name(name);
    // SAFETY: the handle is good while this thread lives; the text ends with a NUL, and is copied.
    unsafe {
        let own = ffi::hak_heap_of_thread();
        if own.is_null() {
            return Err(HeapRefused);
        }
        ffi::hak_heap_set_name(own, name.as_ptr().cast::<ffi::c_char>());
        ffi::hak_heap_set_tag(own, tag);
    }
    Ok(())
}
