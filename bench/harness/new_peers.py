"""Today's peers, built from the registries' own packages into build/peers: `bench/run --peers new`.

Versions are pinned here and nowhere else; only scudo's stands in scripts/install-tools, for it comes as a
Debian package.  Flags are the peers' own for a release."""

from __future__ import annotations

from dataclasses import dataclass

from .recipes import Commands, Compiled, Found, Recipe, Root, Unpacked


@dataclass(frozen=True)
class NewPeer:
    """`package` and `version` are the registry's; `holds` is the allocator's own version in it.  `variables`
    are of the environment, where the allocator is itself only with them."""

    name: str
    registry: str  # crates.io, PyPI or Debian
    package: str
    version: str
    holds: str
    recipe: Recipe
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def origin(self) -> str:
        """Version, flags and variables, for the tables."""
        version = f" {self.version}" if self.version else ""
        variables = "".join(f", {name}={value}" for name, value in self.variables)
        return f"{self.holds}: {self.package}{version} of {self.registry}, {self.recipe.summary}{variables}"


def _mimalloc(name: str, folder: str, holds: str) -> NewPeer:
    # Its CMakeLists.txt's flags for a release; it cannot be run, as the crate leaves its modules out.
    flags = (
        "-std=gnu11 -O3 -DNDEBUG -DMI_BUILD_RELEASE -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT "
        "-DMI_MALLOC_OVERRIDE -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc"
    )
    recipe = Compiled(("src/static.c",), flags, f"c_src/mimalloc/{folder}", include=("include",))
    return NewPeer(name, "crates.io", "libmimalloc-sys", "0.1.49", holds, recipe)


NEW_PEERS = (
    # The newest bears the plain name, which the targets against mimalloc ask for.
    _mimalloc("mimalloc", "v3", "mimalloc 3.3.2 (3.7 exists, in no registry)"),
    _mimalloc("mimalloc2", "v2", "mimalloc 2.3.2"),
    NewPeer(
        "snmalloc",
        "crates.io",
        "snmalloc-sys",
        "0.7.6",
        "snmalloc 0.7",
        Commands(
            (
                "cmake -G Ninja -S {source} -B {build} -DCMAKE_BUILD_TYPE=Release "
                "-DSNMALLOC_BUILD_TESTING=OFF",
                "cmake --build {build} --target snmallocshim",
            ),
            "libsnmallocshim.so",
            "cmake Release (-O3)",
            "upstream",
        ),
    ),
    NewPeer(
        "jemalloc",
        "crates.io",
        "tikv-jemalloc-sys",
        "0.7.1",
        "jemalloc 5.3.1 (5.4 exists, in no registry)",
        Commands(
            (
                "cp -r {source}/jemalloc/. {source}/configure/configure {build}",
                "sh configure --with-version=5.3.1-0-g0 --disable-static --disable-doc",
                "make -j{jobs} build_lib_shared",
            ),
            "lib/libjemalloc.so.2",
            "configure (-O3 -funroll-loops)",
        ),
    ),
    NewPeer(
        "tcmalloc",
        "crates.io",
        "libtcmalloc-sys",
        "0.1.14",
        "Google's tcmalloc of June 2025",
        Compiled(
            ("c_src/tcmalloc/tcmalloc/tcmalloc.cc",),
            "-std=c++17 -O2 -DNDEBUG -DNOMINMAX -w",
            include=("c_src/abseil-cpp", "c_src/tcmalloc"),
            # The bridges are for Rust, and one of them contains tcmalloc.cc without malloc.
            listed_in="build.rs",
            listed_pattern=r'"(c_src/(?:abseil-cpp|tcmalloc)/[^"]+\.(?:cc|S))"',
        ),
        # glibc from 2.35 on takes the restartable sequences that its caches of each processor need; without
        # them it has none and is half as fast.
        (("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),),
    ),
    NewPeer(
        "rpmalloc",
        "crates.io",
        "rpmalloc-sys",
        "0.2.3",
        "rpmalloc b097fd0",
        Compiled(
            ("rpmalloc.c",),
            "-std=c11 -O3 -funroll-loops -ffast-math -D_GNU_SOURCE=1 -DBUILD_RELEASE=1 -DENABLE_PRELOAD=1 "
            "-DENABLE_OVERRIDE=1 -w",
            "rpmalloc/rpmalloc",
        ),
    ),
    # The proxy replaces malloc and hands on to libtbbmalloc.so.2, that is not sought beside it.
    NewPeer(
        "tbbmalloc",
        "PyPI",
        "tbb",
        "2023.2.0",
        "oneTBB 2023.2",
        Unpacked(("libtbbmalloc_proxy.so.2", "libtbbmalloc.so.2")),
    ),
    NewPeer(
        "scudo",
        "Debian",
        "libclang-rt-22-dev",
        "",
        "scudo of LLVM 22",
        Found("/usr/lib/llvm-22/lib/clang/22/lib/linux/libclang_rt.scudo_standalone-{machine}.so"),
    ),
    # Programs that start others are left out: those would run on the machine's own C library.
    NewPeer("glibc-new", "Debian", "libc6", "", "glibc 2.41", Root("trixie")),
)
