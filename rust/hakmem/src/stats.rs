//! What hakmem has counted, as a struct: read from the JSON that C writes, whose numbers are its only contents up to the list of
//! heaps, which comes last.
use hakmem_sys as ffi;

/// hakmem's figures at one moment; sums over all threads. Nothing was stopped to read them: each figure is exact, two of them may
/// be a few operations apart.
///
/// The fields are those of `docs/STATS.md`, and grow with hakmem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The library's version.
    pub version: String,
    /// Where the memory is.
    pub memory: Memory,
    /// Figures of the process.
    pub totals: Totals,
    /// What happened beyond the magazines; what they serve is not counted.
    pub counters: Counters,
    /// The size classes, smallest first.
    pub classes: Vec<Class>,
}

impl Stats {
    /// Bytes in blocks that are live, or that threads keep for their next requests, rounding included.
    pub fn block_bytes(&self) -> u64 {
        let of_slabs = self.memory.slab_out_bytes;
        of_slabs + self.totals.large_live_bytes + self.totals.big_live_bytes
    }
}

/// Of the whole process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// SuperSlabs and ranges that have address space (bytes).
    pub mapped_bytes: u64,
    /// In blocks up to 64 KiB: live, or cached by threads (bytes).
    pub slab_out_bytes: u64,
    /// Free, given back by age (bytes).
    pub dirty_free_bytes: u64,
}

impl Memory {
    fn read(json: &str) -> Memory {
        Memory {
            mapped_bytes: number(json, "mapped_bytes"),
            slab_out_bytes: number(json, "slab_out_bytes"),
            dirty_free_bytes: number(json, "dirty_free_bytes"),
        }
    }
}

macro_rules! define {
    (counters { $(#[$counter_doc:meta] $counter:ident,)* }
     classes { $(#[$class_doc:meta] $class:ident,)* }
     totals { $(#[$total_doc:meta] $total:ident,)* }) => {
        /// What all heaps have counted since the process began; only grows.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters { $(#[$counter_doc] pub $counter: u64,)* }

        impl Counters {
            fn read(json: &str) -> Counters {
                Counters { $($counter: number(json, stringify!($counter)),)* }
            }
        }

        /// Figures of the process.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Totals { $(#[$total_doc] pub $total: u64,)* }

        impl Totals {
            fn read(json: &str) -> Totals {
                Totals { $($total: number(json, stringify!($total)),)* }
            }
        }

        /// A size class.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Class {
            /// How large its blocks are (bytes).
            pub block_bytes: u64,
            $(#[$class_doc] pub $class: u64,)*
        }

        impl Class {
            fn read(json: &str) -> Class {
                Class {
                    block_bytes: number(json, "block_bytes"),
                    $($class: number(json, stringify!($class)),)*
                }
            }
        }
    };
}
hakmem_sys::figures!(define);

/// hakmem's figures now.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;
/// let text = "x".repeat(1000);
/// let stats = hakmem::stats();
/// assert!(stats.block_bytes() >= text.len() as u64);
/// println!("{} bytes committed", stats.totals.committed_bytes);
/// ```
pub fn stats() -> Stats {
    read(&stats_json())
}

/// The same as JSON, as `HAKMEM_STATS=json` prints it.
pub fn stats_json() -> String {
    let mut text: Vec<u8> = Vec::new();
    loop {
        // SAFETY: a buffer and its length; null with 0 is allowed.
        let length = unsafe { ffi::hak_stats_json(text.as_mut_ptr().cast(), text.len()) };
        if length < text.len() {
            text.truncate(length);
            return String::from_utf8(text).unwrap_or_default();
        }
        text.resize(length + 256, 0); // figures may get longer meanwhile
    }
}

fn read(json: &str) -> Stats {
    let (process, classes) = json.split_at(json.find("\"classes\":").unwrap_or(json.len()));
    Stats {
        version: text(process, "hakmem").to_owned(),
        memory: Memory::read(section(process, "memory")),
        totals: Totals::read(section(process, "totals")),
        counters: Counters::read(section(process, "counters")),
        classes: classes
            .split(']')
            .next()
            .into_iter()
            .flat_map(|list| list.split('{').skip(1))
            .map(Class::read)
            .collect(),
    }
}

/// What stands after `"name":`.
fn after<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = json;
    while let Some(place) = rest.find(name) {
        let is_name = rest[..place].ends_with('"');
        rest = &rest[place + name.len()..];
        if let (true, Some(value)) = (is_name, rest.strip_prefix("\":")) {
            return Some(value);
        }
    }
    None
}

/// An object without objects inside.
fn section<'a>(json: &'a str, name: &str) -> &'a str {
    after(json, name).map_or("", |rest| &rest[..rest.find('}').unwrap_or(rest.len())])
}

fn text<'a>(json: &'a str, name: &str) -> &'a str {
    let quoted = after(json, name).and_then(|rest| rest.strip_prefix('"'));
    quoted.map_or("", |rest| &rest[..rest.find('"').unwrap_or(rest.len())])
}

fn number(json: &str, name: &str) -> u64 {
    let rest = after(json, name).unwrap_or("");
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole() {
        let json = "{\"xab\":1,\"ab\":2,\"abc\":3}";
        assert_eq!(number(json, "ab"), 2);
        assert_eq!(number(json, "abc"), 3);
        assert_eq!(number(json, "b"), 0);
    }

    #[test]
    fn a_text_is_read_whole() {
        let json = "{\"hakmem\":\"1.2.3\",\"pid\":7,\"counters\":{\"refills\":5,\"enomem\":18446744073709551615},\
                    \"totals\":{\"committed_bytes\":2},\"memory\":{\"mapped_bytes\":9},\
                    \"classes\":[{\"class\":0,\"tier\":\"tiny\",\"block_bytes\":8,\"refilled_blocks\":4},\
                    {\"class\":1,\"tier\":\"tiny\",\"block_bytes\":16,\"refilled_blocks\":6}]}";
        let stats = read(json);
        assert_eq!(stats.version, "1.2.3");
        assert_eq!(
            (stats.counters.refills, stats.counters.enomem),
            (5, u64::MAX)
        );
        assert_eq!(
            (stats.totals.committed_bytes, stats.memory.mapped_bytes),
            (2, 9)
        );
        let sizes: Vec<u64> = stats
            .classes
            .iter()
            .map(|class| class.block_bytes)
            .collect();
        assert_eq!(sizes, [8, 16]);
        assert_eq!(stats.classes[1].refilled_blocks, 6);
    }

    /// Every figure that C writes has its field, and no field has a name that C does not write.
    #[test]
    fn all_figures_are_there() {
        let json = stats_json();
        let (process, classes) = json.split_at(json.find("\"classes\":").expect("classes"));
        let class = classes.split('{').nth(1).expect("a class");
        let written = |text: &str| text.matches("\":").count();
        macro_rules! check {
            (counters { $(#[$c:meta] $counter:ident,)* } classes { $(#[$k:meta] $class:ident,)* }
             totals { $(#[$t:meta] $total:ident,)* }) => {
                let known: [(&str, &[&str]); 2] = [
                    ("counters", &[$(stringify!($counter)),*]),
                    ("totals", &[$(stringify!($total)),*]),
                ];
                for (name, fields) in known {
                    let text = section(process, name);
                    assert_eq!(written(text), fields.len(), "{}", text);
                    assert!(fields.iter().all(|field| after(text, field).is_some()));
                }
                let fields: &[&str] = &["class", "tier", "block_bytes", $(stringify!($class)),*];
                assert_eq!(written(class), fields.len(), "{}", class);
                assert!(fields.iter().all(|field| after(class, field).is_some()));
            };
        }
        hakmem_sys::figures!(check);
        assert_eq!(written(section(process, "memory")), 3);
    }
}
