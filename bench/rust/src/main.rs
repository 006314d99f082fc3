//! Loads as Rust programs have them: `hakmem-bench LOAD AMOUNT`.
//!
//!     index     words of a text → the places where each stands: many small strings, vectors that grow
//!     json      a document is parsed, changed and written, by serde_json
//!     messages  four threads send vectors to each other and drop what they get
//!     trees     expressions are built of boxes, rewritten and evaluated
//!
//! Prints a checksum, which is the same for all allocators, and the peak of the resident memory in KiB.
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::mpsc;
use std::thread;

#[cfg(feature = "hakmem")]
#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }

    fn word(&mut self) -> String {
        let bits = 4 + self.below(12);
        let kind = self.below(1 << bits);
        format!("word-{kind}-{}", "x".repeat((kind % 23) as usize))
    }
}

fn index(amount: u64) -> u64 {
    let mut random = Random(1);
    let mut sum = 0;
    for _ in 0..amount {
        let text: Vec<String> = (0..60_000).map(|_| random.word()).collect();
        let mut places: HashMap<String, Vec<u32>> = HashMap::new();
        for (place, word) in text.iter().enumerate() {
            places.entry(word.clone()).or_default().push(place as u32);
        }
        let mut words: Vec<(String, usize)> = places
            .into_iter()
            .map(|(word, found)| (word, found.len()))
            .collect();
        words.sort();
        sum += words
            .iter()
            .take(100)
            .map(|(word, count)| (word.len() * count) as u64)
            .sum::<u64>();
    }
    sum
}

fn json(amount: u64) -> u64 {
    let mut random = Random(2);
    let rows: Vec<serde_json::Value> = (0..3000)
        .map(|number| {
            let tags: Vec<String> = (0..random.below(8)).map(|_| random.word()).collect();
            serde_json::json!({"id": number, "name": random.word(), "tags": tags,
                               "at": {"x": random.below(1000), "y": random.below(1000)}, "note": null})
        })
        .collect();
    let mut text = serde_json::to_string(&rows).expect("valid");
    for turn in 0..amount {
        let mut document: serde_json::Value = serde_json::from_str(&text).expect("valid");
        for row in document.as_array_mut().expect("rows").iter_mut().step_by(3) {
            row["name"] = serde_json::Value::from(format!("turn {turn}"));
        }
        text = serde_json::to_string(&document).expect("valid");
    }
    text.len() as u64
}

fn messages(amount: u64) -> u64 {
    const THREADS: u64 = 4;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS)
        .map(|_| mpsc::sync_channel::<Vec<Vec<u8>>>(16))
        .unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(own, receiver)| {
            let next = senders[(own + 1) % THREADS as usize].clone();
            thread::spawn(move || {
                let mut random = Random(own as u64 + 3);
                let mut sum = 0;
                for _ in 0..amount {
                    let batch = (0..32)
                        .map(|_| vec![1u8; 1 + random.below(2000) as usize])
                        .collect();
                    next.send(batch).expect("a receiver");
                    let got = receiver.recv().expect("a sender");
                    sum += got.iter().map(|message| message.len() as u64).sum::<u64>();
                }
                sum
            })
        })
        .collect();
    drop(senders);
    threads
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .sum()
}

enum Tree {
    Leaf(u64),
    Sum(Box<Tree>, Box<Tree>),
    Many(Vec<Tree>),
}

impl Tree {
    fn grow(random: &mut Random, depth: u32) -> Tree {
        match random.below(if depth == 0 { 1 } else { 4 }) {
            0 => Tree::Leaf(random.below(100)),
            1 => Tree::Many(
                (0..random.below(6))
                    .map(|_| Tree::grow(random, depth - 1))
                    .collect(),
            ),
            _ => Tree::Sum(
                Box::new(Tree::grow(random, depth - 1)),
                Box::new(Tree::grow(random, depth - 1)),
            ),
        }
    }

    fn simplified(self) -> Tree {
        match self {
            Tree::Leaf(value) => Tree::Leaf(value),
            Tree::Sum(left, right) => match (left.simplified(), right.simplified()) {
                (Tree::Leaf(a), Tree::Leaf(b)) => Tree::Leaf(a + b),
                (left, right) => Tree::Many(vec![left, right]),
            },
            Tree::Many(trees) => Tree::Many(trees.into_iter().map(Tree::simplified).collect()),
        }
    }

    fn value(&self) -> u64 {
        match self {
            Tree::Leaf(value) => *value,
            Tree::Sum(left, right) => left.value() + right.value(),
            Tree::Many(trees) => trees.iter().map(Tree::value).sum(),
        }
    }
}

fn trees(amount: u64) -> u64 {
    let mut random = Random(7);
    (0..amount * 1000)
        .map(|_| black_box(Tree::grow(&mut random, 12).simplified()).value())
        .sum()
}

/// Not what getrusage says: that counts what the process was before exec, too.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|kib| kib.parse().ok()).expect("a number")
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let amount = words
        .get(2)
        .and_then(|amount| amount.parse().ok())
        .expect("hakmem-bench LOAD AMOUNT");
    let result = match words[1].as_str() {
        "index" => index(amount),
        "json" => json(amount),
        "messages" => messages(amount),
        "trees" => trees(amount),
        other => panic!("no load is called {other}"),
    };
    println!("{result} {}", peak_kib());
}
