//! Which C sources there are: the rules of cmake/sources.cmake (tests/packages/test_crate.py compares the outcome).
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Not for a program that hakmem is linked into: only libhakmem.so has them, or a library that goes by jemalloc's name.
const NEVER: [&str; 5] = [
    "src/jemalloc/etc.c",
    "src/api/override_load.c",
    "src/api/override_next.c",
    "src/api/override_threads.c",
    "src/api/override_prctl.c",
];
/// The C library's names, and jemalloc's.
const OVERRIDE: [&str; 2] = ["src/api/override", "src/jemalloc/"];
/// The folders that come first: what processes run that have threads or live for seconds.
const LONG_LIVED: [&str; 7] = [
    "cache", "named", "pool", "purge", "ranges", "reclaim", "slab",
];

/// Where `src`, `include` and `cmake` are: beside this in the packed crate, else in the tree above.
pub fn tree() -> PathBuf {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let packed = here.join("c");
    if packed.is_dir() {
        packed
    } else {
        here.join("../..")
    }
}

/// In the linker's order.
pub fn all(tree: &Path, with_override: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    add_folder(&tree.join("src"), &mut found);
    found.sort();
    found.retain(|path| {
        let name = name_in(tree, path);
        let is_override =
            !with_override && OVERRIDE.iter().any(|begin| name.starts_with(begin));
        !is_override && !NEVER.iter().any(|left_out| name.starts_with(left_out))
    });
    found.sort_by_key(|path| !is_long_lived(path));
    found
}

fn add_folder(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("hakmem-sys: cannot read {}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            add_folder(&path, found);
        } else if path.extension().map_or(false, |ending| ending == "c") {
            found.push(path);
        }
    }
}

fn name_in(tree: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(tree).expect("found there");
    inside.to_string_lossy().into_owned()
}

fn is_long_lived(path: &Path) -> bool {
    path.parent()
        .and_then(Path::file_name)
        .and_then(|folder| folder.to_str())
        .map_or(false, |folder| LONG_LIVED.contains(&folder))
}
