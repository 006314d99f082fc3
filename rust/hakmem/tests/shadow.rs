//! Random calls beside a model of what each block must contain: nothing overlaps, moves by itself, or loses its content.
//!
//! The seeds are fixed; SHADOW_STEPS makes a run longer.
use std::alloc::{GlobalAlloc, Layout};
use std::collections::BTreeMap;
use std::thread;

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

/// xorshift64*
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Mostly small, up to 4 MiB; 0 is no size of GlobalAlloc's.
    fn size(&mut self) -> usize {
        let magnitude = match self.below(16) {
            0..=9 => 10,
            10..=13 => 16,
            14 => 20,
            _ => 22,
        };
        let bits = 1 + self.below(magnitude);
        1 + self.below(1 << bits) as usize
    }

    fn alignment(&mut self) -> usize {
        match self.below(4) {
            0 => 1 << self.below(17),
            _ => 1 << self.below(5),
        }
    }
}

struct Block {
    layout: Layout,
    mark: u8,
    is_zero: bool,
}

/// Live blocks by address.
#[derive(Default)]
struct Model {
    blocks: BTreeMap<usize, Block>,
    marks: u8,
}

/// The bytes that are marked and looked at: both ends, and some in between.
fn places(size: usize) -> impl Iterator<Item = usize> {
    let step = (size / 16).max(1);
    (0..size.min(64))
        .chain((0..size).step_by(step))
        .chain(size.saturating_sub(64)..size)
}

impl Model {
    /// A new block, or one that was resized: where no other is, and aligned.
    unsafe fn add(&mut self, address: *mut u8, layout: Layout, is_zero: bool) {
        assert!(!address.is_null(), "{layout:?}");
        let begin = address as usize;
        assert_eq!(begin % layout.align(), 0, "{layout:?} at {begin:#x}");
        if let Some((before, block)) = self.blocks.range(..=begin).next_back() {
            assert!(
                before + block.layout.size() <= begin,
                "{layout:?} at {begin:#x} lies in another"
            );
        }
        if let Some((after, _)) = self.blocks.range(begin..).next() {
            assert!(
                begin + layout.size() <= *after,
                "{layout:?} at {begin:#x} reaches into another"
            );
        }
        self.marks = self.marks.wrapping_add(1) | 1;
        let mark = self.marks;
        if !is_zero {
            for place in places(layout.size()) {
                address.add(place).write(mark ^ place as u8);
            }
        }
        self.blocks.insert(
            begin,
            Block {
                layout,
                mark,
                is_zero,
            },
        );
    }

    unsafe fn check(address: usize, block: &Block, size: usize) {
        let bytes = address as *const u8;
        for place in places(block.layout.size()).filter(|place| *place < size) {
            let expected = if block.is_zero {
                0
            } else {
                block.mark ^ place as u8
            };
            assert_eq!(
                bytes.add(place).read(),
                expected,
                "byte {place} of {:?}",
                block.layout
            );
        }
    }

    fn any(&mut self, random: &mut Random) -> Option<(usize, Block)> {
        let first = self.blocks.keys().next()?;
        let last = self.blocks.keys().next_back()?;
        let from = first + random.below((last - first + 1) as u64) as usize;
        let found = *self
            .blocks
            .range(from..)
            .next()
            .map_or(first, |(address, _)| address);
        self.blocks.remove(&found).map(|block| (found, block))
    }

    unsafe fn step(&mut self, random: &mut Random) {
        match random.below(8) {
            0..=2 => {
                let layout =
                    Layout::from_size_align(random.size(), random.alignment()).expect("valid");
                self.add(ALLOCATOR.alloc(layout), layout, false);
            }
            3 => {
                let layout =
                    Layout::from_size_align(random.size(), random.alignment()).expect("valid");
                let address = ALLOCATOR.alloc_zeroed(layout);
                assert!(
                    (0..layout.size()).all(|place| address.add(place).read() == 0),
                    "{layout:?}"
                );
                self.add(address, layout, true);
            }
            4 | 5 => {
                if let Some((address, block)) = self.any(random) {
                    let near = (block.layout.size() as u64 / 2
                        + random.below(block.layout.size() as u64 + 2))
                        as usize;
                    let size = if random.below(2) == 0 {
                        random.size()
                    } else {
                        near.max(1)
                    };
                    let layout =
                        Layout::from_size_align(size, block.layout.align()).expect("valid");
                    let resized = ALLOCATOR.realloc(address as *mut u8, block.layout, size);
                    Self::check(resized as usize, &block, size);
                    self.add(resized, layout, false);
                }
            }
            _ => {
                if let Some((address, block)) = self.any(random) {
                    Self::check(address, &block, usize::MAX);
                    ALLOCATOR.dealloc(address as *mut u8, block.layout);
                }
            }
        }
    }

    unsafe fn end(&mut self) {
        for (address, block) in std::mem::take(&mut self.blocks) {
            Self::check(address, &block, usize::MAX);
            ALLOCATOR.dealloc(address as *mut u8, block.layout);
        }
    }
}

fn run(seed: u64) {
    let steps =
        std::env::var("SHADOW_STEPS").map_or(20_000, |steps| steps.parse().expect("a number"));
    let mut random = Random(seed);
    let mut model = Model::default();
    for _ in 0..steps {
        // SAFETY: the model knows which blocks are live, and their layouts.
        unsafe { model.step(&mut random) };
        if model.blocks.len() > 2000 {
            // SAFETY: as above.
            unsafe { model.end() };
        }
    }
    // SAFETY: as above.
    unsafe { model.end() };
}

#[test]
fn one_thread() {
    run(0x5EED);
}

#[test]
fn four_threads() {
    let threads: Vec<_> = (1..=4u64)
        .map(|seed| thread::spawn(move || run(seed)))
        .collect();
    for thread in threads {
        thread.join().expect("a thread that found nothing wrong");
    }
}
