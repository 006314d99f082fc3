//! Compiles hakmem's C sources into one object, as cmake/product.cmake does for libhakmem.a, and makes a Rust table of what it
//! counts.
mod figures;
mod native;
mod sources;

use std::env;
use std::path::PathBuf;

fn main() {
    let tree = sources::tree();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo:rerun-if-changed=build");
    for part in ["src", "include", "cmake"] {
        println!("cargo:rerun-if-changed={}", tree.join(part).display());
    }
    figures::write(&tree.join("src/base/counters.def"), &out.join("figures.rs"));
    // src/lib.rs says what is wrong with an unsupported target; documentation needs no library.
    if is_supported() && env::var_os("DOCS_RS").is_none() {
        native::build(&tree, &out);
    }
    println!("cargo:include={}", tree.join("include").display());
}

/// As cmake/machine.cmake.
fn is_supported() -> bool {
    let is = |name: &str, value: &str| env::var(name).as_deref() == Ok(value);
    is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_POINTER_WIDTH", "64")
        && is("CARGO_CFG_TARGET_ENDIAN", "little")
}
