# Which source goes where.
#   hakmem_sources   the product
#   shared_sources   what it has beside those as libhakmem.so
#   core_sources     without whatever overrides the program's malloc: for tests, under hak_* names only
#   fake_sources     the core on the fake operating system
file(GLOB_RECURSE all_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)

set(hakmem_sources ${all_sources})
list(FILTER hakmem_sources EXCLUDE REGEX "/src/os/os_fake\\.c$")

set(shared_sources ${hakmem_sources})
list(FILTER shared_sources INCLUDE REGEX "/src/api/override_threads\\.c$")
list(REMOVE_ITEM hakmem_sources ${shared_sources})

# The linker keeps this order: large static arrays, which many a process never touches, go to the end, and
# what every process writes at its start shares a page.
set(sources_of_large_arrays ${hakmem_sources})
list(FILTER sources_of_large_arrays INCLUDE REGEX "/(options|range|large|big|cgroup|sampled)\\.c$")
list(REMOVE_ITEM hakmem_sources ${sources_of_large_arrays})
list(APPEND hakmem_sources ${sources_of_large_arrays})

set(core_sources ${hakmem_sources})
list(FILTER core_sources EXCLUDE REGEX "/src/api/override[^/]*\\.c$")

set(fake_sources ${core_sources})
list(FILTER fake_sources EXCLUDE REGEX "/src/os/os_linux\\.c$")
list(APPEND fake_sources ${PROJECT_SOURCE_DIR}/src/os/os_fake.c)
