//! The object: compiled as cmake/flags.cmake says, linked as cmake/whole.ld says, and with no names but hakmem's own.
//!
//! ```text
//! src/**/*.c ──cc──▶ *.o ──cc -r -T whole.ld──▶ hakmem-whole.o ──objcopy──▶ internal names local ──▶ libhakmem.a
//! ```
//!
//! All code lies in one section, by whose ends hakmem knows its own code in a call stack.
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::sources;

/// Of cmake/flags.cmake, but for warnings (tests/packages/test_crate.py compares what the compilers are told).
const FLAGS: [&str; 16] = [
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
    "-fno-builtin-aligned_alloc",
    "-fno-builtin-posix_memalign",
    "-fno-builtin-memalign",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-semantic-interposition",
    "-fno-plt",
    "-fno-lto",
    "-ffunction-sections",
    "-fdata-sections",
];

/// Of x86-64, beyond those.
const FLAGS_X86_64: [&str; 2] = ["-fno-stack-clash-protection", "-fcf-protection=none"];

pub fn build(tree: &Path, out: &Path) {
    refuse_lto();
    let with_override = env::var_os("CARGO_FEATURE_OVERRIDE").is_some();
    check_compiler(tree);
    let objects = compile(tree, &sources::all(tree, with_override));
    let whole = link(tree, &objects, &out.join("hakmem-whole.o"));
    hide_names(&whole, with_override);
    let mut archive = settings(tree);
    archive.object(&whole).cargo_metadata(true);
    archive
        .try_compile("hakmem")
        .unwrap_or_else(|error| fail(&format!("the archive cannot be made: {error}")));
}

/// A user's flags come after ours: `-flto` among them would leave nothing that could be linked and have its names hidden.
fn refuse_lto() {
    let target = env::var("TARGET").unwrap_or_default();
    let of_targets = [
        format!("CFLAGS_{target}"),
        format!("CFLAGS_{}", target.replace('-', "_")),
    ];
    let of_all = ["TARGET_CFLAGS", "HOST_CFLAGS", "CFLAGS"].map(String::from);
    for name in of_targets.iter().chain(&of_all) {
        if let Ok(flags) = env::var(name) {
            env::set_var(name, format!("{flags} -fno-lto"));
        }
    }
}

fn settings(tree: &Path) -> cc::Build {
    let is_debug = env::var_os("CARGO_FEATURE_DEBUG").is_some();
    let mut build = cc::Build::new();
    build
        .std("gnu17")
        .opt_level(2) // whatever the profile: a program's own speed in tests is hakmem's as well
        .pic(true)
        .force_frame_pointer(false)
        .warnings(false)
        .cargo_metadata(false)
        .include(tree.join("src"))
        .include(tree.join("include"))
        .define("_GNU_SOURCE", None)
        .define("HAK_DEBUG", if is_debug { "1" } else { "0" });
    for flag in FLAGS {
        build.flag(flag);
    }
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        for flag in FLAGS_X86_64 {
            build.flag(flag);
        }
    }
    build
}

/// cc's own message does not say what to do.
fn check_compiler(tree: &Path) {
    let compiler = settings(tree)
        .try_get_compiler()
        .unwrap_or_else(|error| fail_without_compiler(&error.to_string()));
    let answer = compiler.to_command().arg("--version").output();
    if let Err(error) = answer {
        fail_without_compiler(&format!("{}: {error}", compiler.path().display()));
    }
}

/// NUM_JOBS files at a time.
fn compile(tree: &Path, sources: &[PathBuf]) -> Vec<PathBuf> {
    let jobs: usize = env::var("NUM_JOBS").map_or(1, |jobs| jobs.parse().unwrap_or(1));
    let share = (sources.len() + jobs - 1) / jobs.max(1);
    let results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = sources
            .chunks(share.max(1))
            .map(|files| {
                scope.spawn(move || settings(tree).files(files).try_compile_intermediates())
            })
            .collect();
        workers.into_iter().map(|worker| worker.join()).collect()
    });
    let mut objects = Vec::new();
    for result in results {
        match result.expect("no panic") {
            Ok(made) => objects.extend(made),
            Err(error) => fail_without_compiler(&error.to_string()),
        }
    }
    objects
}

fn link(tree: &Path, objects: &[PathBuf], whole: &Path) -> PathBuf {
    let mut script = std::ffi::OsString::from("-Wl,-T,");
    script.push(tree.join("cmake/whole.ld"));
    let mut command = settings(tree).get_compiler().to_command();
    command
        .args(["-r", "-nostdlib"])
        .arg(script)
        .arg("-o")
        .arg(whole);
    run(command.args(objects)).unwrap_or_else(|error| fail(&error));
    whole.to_path_buf()
}

/// Those of its internal functions would meet others of the same name in the program; with `override` the C library's stay.
fn hide_names(whole: &Path, with_override: bool) {
    let names: &[&str] = if with_override {
        &["--localize-hidden"]
    } else {
        &["--wildcard", "--keep-global-symbol=hak_*"]
    };
    // The base of all USDT probes, in a section that the linker takes from the first object that has it.
    let shared = ["--globalize-symbol=_.stapsdt.base"];
    // Rust's linker does not know GNU's name of a symbol without a version.
    let redefined = ["--redefine-sym", "_dl_find_object@=_dl_find_object"];
    let mut tried = Vec::new();
    for program in objcopies() {
        match run(Command::new(&program)
            .args(names)
            .args(redefined)
            .arg(whole))
        .and_then(|()| run(Command::new(&program).args(shared).arg(whole)))
        {
            Ok(()) => return,
            Err(error) => tried.push(error),
        }
    }
    fail(&format!(
        "no objcopy works for this target; install binutils (Debian, Ubuntu: apt install binutils; Fedora: dnf install \
         binutils; Alpine: apk add binutils), for another architecture its own (binutils-aarch64-linux-gnu), or set \
         OBJCOPY:\n{}",
        tried.join("\n")
    ));
}

/// What the user says; else the compiler's own; else any.
fn objcopies() -> Vec<String> {
    let target = env::var("TARGET").unwrap_or_default();
    let of_target = format!("OBJCOPY_{}", target.replace('-', "_"));
    for name in [of_target.as_str(), "OBJCOPY"] {
        println!("cargo:rerun-if-env-changed={name}");
        if let Ok(program) = env::var(name) {
            return vec![program];
        }
    }
    let compiler = cc::Build::new().get_compiler();
    let path = compiler.path().to_string_lossy().into_owned();
    let own = path
        .strip_suffix("-gcc")
        .map(|prefix| format!("{prefix}-objcopy"));
    let others = ["objcopy", "llvm-objcopy"].map(String::from);
    own.into_iter().chain(others).collect()
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{command:?}\n{}",
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

fn fail_without_compiler(what: &str) -> ! {
    let target = env::var("TARGET").unwrap_or_default();
    let is_cross = env::var("HOST").map_or(false, |host| host != target);
    let packages = if is_cross && target.starts_with("aarch64") {
        "    Debian, Ubuntu   apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross\n\
         \x20   Fedora           dnf install gcc-aarch64-linux-gnu sysroot-aarch64-fc$(rpm -E %fedora)-glibc\n"
    } else {
        "    Debian, Ubuntu   apt install gcc libc6-dev\n\
         \x20   Fedora           dnf install gcc glibc-devel\n\
         \x20   Alpine           apk add gcc musl-dev linux-headers\n"
    };
    fail(&format!(
        "hakmem is written in C, and its sources could not be compiled for {target}. It needs gcc 12 or clang 14, or newer, \
         and the C library's headers:\n{packages}or name your compiler by CC.\n{what}"
    ))
}

fn fail(what: &str) -> ! {
    eprintln!("hakmem-sys: {what}");
    std::process::exit(1)
}
