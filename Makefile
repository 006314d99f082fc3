# The front door.  `make help` lists what can be asked for; CMakeLists.txt knows how it is built.
.DEFAULT_GOAL := build
SHELL := /bin/sh
PREFIX ?= /usr/local
VENV := build/venv
SITE_VENV := build/site-venv

# $(call quietly,command): its output is shown only when it fails.
quietly = output=$$($(1) 2>&1) || { printf '%s\n' "$$output"; exit 1; }

.PHONY: help build release debug tool wheel crate run test test-all test-aarch64 test-compilers test-kernels test-musl test-packages test-programs test-wheels fuzz mutate soak bench \
        scaling lab coherence site fresh install uninstall deb dist format lint clean tools-library tools-build tools-lint tools-rust tools-test tools-tests tools-kernels tools-fuzz \
        tools-bench tools-deb tools-root tools-wheels tools-aarch64 plain-path

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Before what writes names of files into LD_PRELOAD or packages, which cannot carry all of them.
plain-path:
	@case "$${PWD}" in *[[:space:]:$$]*) echo "hakmem: $${PWD}: this needs a folder without space, colon or dollar sign in its path; clone hakmem" \
	    "into another one (make, make run and make install work here)" >&2; exit 2;; esac

# The tools first, so that all that is missing is named at once.
build: tools-build release debug tool ## libhakmem.so, libhakmem.a in build/, debug variants in build/debug/, the tool in build/venv/bin/hakmem

release: build/build.ninja
	@$(call quietly,cmake --build --preset release)

debug: build/debug/build.ninja
	@$(call quietly,cmake --build --preset debug --target hakmem hakmem_static)

build/build.ninja: PRESET := release
build/debug/build.ninja: PRESET := debug
build/build.ninja: | tools-library
build/debug/build.ninja: | tools-build
build/build.ninja build/debug/build.ninja: CMakePresets.json
	@echo "hakmem: preparing $(@D)"
	@$(call quietly,cmake --preset $(PRESET)) && touch $@

$(VENV)/ready: scripts/requirements.txt | tools-build
	@scripts/make-venv $(VENV)

tool: $(VENV)/ready ## the Python tool alone: build/venv/bin/hakmem
	@scripts/make-tool $(VENV)

tools-library tools-build tools-lint tools-rust tools-test tools-kernels tools-fuzz tools-bench tools-deb tools-root tools-wheels tools-aarch64: tools-%:
	@scripts/install-tools $*

# First of all, so that what is missing is named at once.  A first look goes on without what only
# root could install: such a test says what it lacks.
tools-tests:
	@scripts/install-tools build $(if $(QUICK),--optional quick,test kernels)

crate: plain-path | tools-rust ## the Rust crates hakmem-sys and hakmem, packed: build/dist/*.crate
	@scripts/pack-crates

wheel: plain-path release $(VENV)/ready ## what `pip install hakmem` gets, in build/dist (NAME=all: for every platform, and the source distribution)
	@$(VENV)/bin/python scripts/wheel $(NAME)

# The command reaches the script through the environment, untouched by make and the shell.
run: export HAK_RUN_COMMAND := $(value CMD)
run: release ## hakmem compiles itself, against glibc's malloc, two minutes at most; CMD='program ...' runs any program on it
	@scripts/run

test-all: export ALL := 1
test-all: test ## all tests, in 30 minutes; .ci/run runs them

test: plain-path tools-tests build $(VENV)/ready ## the most telling tests, 5 minutes (QUICK=1: a first look, 75 seconds; ARGS='tests/api -k name': some)
	@QUICK=$(QUICK) $(VENV)/bin/python scripts/test $(ARGS)

test-kernels: plain-path build $(VENV)/ready | tools-test tools-kernels ## the tests' programs on Debian's kernels, oldest to newest (ONLY=regex)
	@KERNELS=all $(VENV)/bin/python -m pytest -q tests/kernels $(ARGS)

test-compilers: plain-path build $(VENV)/ready | tools-test tools-root ## gcc 13 to 16, clang 15 to 22: warnings, unit tests, programs, the fast paths' instructions (an hour; ONLY=regex; needs root)
	@COMPILERS=all $(VENV)/bin/python -m pytest -q -s tests/compilers $(ARGS)

test-musl: plain-path build $(VENV)/ready | tools-test tools-wheels ## the wheel for musllinux and its archive on musl 1.2.2 to 1.2.6; Node and cmake as built for Alpine, preloaded
	@MUSL=all $(VENV)/bin/python -m pytest -q tests/musl $(ARGS)

test-aarch64: plain-path build $(VENV)/ready | tools-test tools-aarch64 ## unit tests and the tests' programs on aarch64, emulated, with pages of 4, 16 and 64 KiB (ONLY=4|16|64)
	@scripts/test-aarch64 "$(ONLY)" $(ARGS)

test-programs: plain-path build $(VENV)/ready | tools-test tools-root ## 64 programs of Debian 13, preloaded, in four modes, beside their run without (an hour, 10 GB; ONLY=regex; needs root)
	@PROGRAMS=all $(VENV)/bin/python -m pytest -q tests/programs $(ARGS)

test-wheels: plain-path build $(VENV)/ready | tools-test tools-wheels ## wheels of every platform, installed and run; the tests' programs on other versions of glibc
	@WHEELS=all GLIBCS=all $(VENV)/bin/python -m pytest -q tests/wheels $(ARGS)

fuzz: plain-path | tools-build tools-fuzz ## calls in random order, and the options, on libFuzzer (FUZZ_SECONDS=60 for each target)
	@scripts/fuzz

soak: plain-path build $(VENV)/ready | tools-test ## mixed loads with every assertion on, memory must not grow (SOAK_MINUTES=30); the tool on any input; a million samples and switches
	@SOAK_MINUTES=$${SOAK_MINUTES:-30} $(VENV)/bin/python -m pytest -q -s tests/soak
	@FUZZ_TOOL_SECONDS=$${FUZZ_TOOL_SECONDS:-120} $(VENV)/bin/python -m pytest -q tests/tool/test_fuzz.py tests/tool/test_fuzz_files.py \
	    tests/tool/test_what.py -k "fuzz or middle or damaged"
	@PROFILE_SAMPLES=$${PROFILE_SAMPLES:-1000000} PROFILE_INTERVALS=$${PROFILE_INTERVALS:-20000} \
	    PROFILE_SWITCHES=$${PROFILE_SWITCHES:-1000000} $(VENV)/bin/python -m pytest -q -s \
	    tests/profiles/test_bias.py tests/profiles/test_coverage.py tests/switch/test_storm.py

mutate: plain-path tools-test build $(VENV)/ready ## what each unit test brings: which notice a changed line of src/ (COUNT=300 mutants, hours; SEED=1)
	@$(VENV)/bin/python scripts/mutate --count $(or $(COUNT),300) --seed $(or $(SEED),1) $(ARGS)

# What is missing and cannot be installed is left out, and named below the tables.
bench: plain-path release $(VENV)/ready ## benchmarks against the peers, 28 minutes (BUDGET=180: 3 hours; QUICK=1: 3; PEERS=new: today's versions; ARGS='...'); again: goes on
	@scripts/install-tools --optional bench $(if $(filter new,$(PEERS)),peers)
	@QUICK=$(QUICK) PEERS=$(PEERS) BUDGET=$(BUDGET) $(VENV)/bin/python bench/run $(ARGS)

scaling: plain-path release $(VENV)/ready ## throughput from one thread to twice the processors, against the peers, as a chart: build/bench/scaling (QUICK=1, PEERS=new, ARGS='...')
	@scripts/install-tools --optional bench $(if $(filter new,$(PEERS)),peers)
	@QUICK=$(QUICK) PEERS=$(PEERS) $(VENV)/bin/python bench/run --scaling $(ARGS)

coherence: plain-path build/debug/build.ninja $(VENV)/ready ## cache lines that pass between 4 to 256 virtual cores inside hakmem, 10 minutes (ARGS='--load server --threads 4 64')
	@$(VENV)/bin/python lab/coherence/run $(ARGS)

lab: plain-path release $(VENV)/ready | tools-bench ## the experiments that failed, again: table, chart and page (QUICK=1, ARGS='...')
	@QUICK=$(QUICK) $(VENV)/bin/python lab/run $(ARGS)

fresh: | tools-root ## `make run` and `make test` in a new, bare root, by a user with sudo, 15 minutes (SUITE=trixie, noble; QUICK=1: 5; MATRIX=.: a table of paths, users, locales, compilers, load, two hours; needs root)
	@SUITE=$(or $(SUITE),bookworm) QUICK=$(QUICK) tests/fresh/$(if $(MATRIX),matrix,run)

install: release ## library, header files, man pages into PREFIX (/usr/local), below DESTDIR if that is set
	@DESTDIR='$(DESTDIR)' scripts/install build '$(PREFIX)'

uninstall: ## removes what `make install` put into PREFIX
	@DESTDIR='$(DESTDIR)' scripts/install --remove '$(PREFIX)'

.PHONY: site
$(SITE_VENV)/ready: scripts/site/requirements.txt | tools-build
	@scripts/make-venv $(SITE_VENV) $<

site: plain-path $(SITE_VENV)/ready ## the documentation as a site, its links checked: build/site/index.html
	@scripts/make-site $(SITE_VENV) build/site

deb: plain-path build $(VENV)/ready | tools-deb ## Debian packages of library, tool and symbols: build/deb/*.deb, checked by lintian
	@scripts/deb

# What cannot be installed is named by scripts/dist, with the part that lacks it.
dist: plain-path build $(VENV)/ready ## all that a release consists of, in build/dist: source, wheels, packages, crates, SBOM, sums (ARGS=--allow-missing)
	@scripts/install-tools --optional wheels deb rust
	@$(VENV)/bin/python scripts/dist $(ARGS)

test-packages: plain-path build deb | tools-test tools-root tools-rust tools-wheels ## what users install, in all its forms, the packages in a new Debian 12 root (25 minutes)
	@$(call quietly,cmake --build --preset debug --target hakmem_core) # of the header file for C++ under sanitizers
	@PACKAGES=all $(VENV)/bin/python -m pytest -q tests/packages tests/tool/test_operators.py $(ARGS)

C_FILES = git ls-files '*.c' '*.cc' '*.h' '*.hpp'

format: $(VENV)/ready | tools-lint ## lays out all C, C++ and Python sources
	@$(C_FILES) | xargs clang-format -i
	@$(VENV)/bin/ruff format -q

# With assertions: what they say is then known.
lint: $(VENV)/ready | tools-lint ## checks the sources: the C sources by clang-tidy (.clang-tidy), Python by ruff, the tool's types by mypy
	@$(C_FILES) | xargs clang-format --dry-run -Werror
	@$(VENV)/bin/ruff check -q && $(VENV)/bin/ruff format -q --check
	@$(call quietly,$(VENV)/bin/mypy)
	@$(call quietly,cmake --preset clang)
	@$(call quietly,run-clang-tidy -quiet -p build/clang -j$$(nproc) -extra-arg=-UHAK_DEBUG -extra-arg=-DHAK_DEBUG=1 \
	    '/(src|fortify|replay|walk)/.*\.c$$')

clean: ## removes everything that was built
	@rm -rf build
