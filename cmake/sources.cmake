# Which source goes where.
#   hakmem_sources   the product
#   shared_sources   what it has beside those as libhakmem.so
#   jemalloc_sources what a library that goes by jemalloc's name has beside those
#   fortify_sources  libhakmem-fortify.so
file(GLOB_RECURSE hakmem_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
file(GLOB fortify_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fortify/*.c)

set(shared_sources ${hakmem_sources})
list(FILTER shared_sources INCLUDE REGEX "/src/api/override_(next|threads|prctl|load)\\.c$")
list(REMOVE_ITEM hakmem_sources ${shared_sources})

set(jemalloc_sources ${PROJECT_SOURCE_DIR}/src/jemalloc/etc.c)
list(REMOVE_ITEM hakmem_sources ${jemalloc_sources})

# The linker keeps this order. First what processes run that have threads or live for seconds, so
# that it lies together after what all run (cmake/first.ld).
set(sources_of_long_lived ${hakmem_sources})
list(FILTER sources_of_long_lived INCLUDE REGEX "/src/(cache|named|pool|purge|ranges|reclaim|slab)/")
list(REMOVE_ITEM hakmem_sources ${sources_of_long_lived})
list(PREPEND hakmem_sources ${sources_of_long_lived})
