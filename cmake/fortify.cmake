# libhakmem-fortify.so: bounds of heap blocks, checked in the C library's functions.  It is
# preloaded before libhakmem.so (hakmem run --harden), and finds it at run time.  It replaces
# glibc's functions by glibc's rules.
include(CheckSymbolExists)
check_symbol_exists(__GLIBC__ features.h HAK_IS_GLIBC)
if(NOT HAK_IS_GLIBC)
  return()
endif()

set(fortify_script ${PROJECT_SOURCE_DIR}/fortify/fortify.map)
add_library(hakmem_fortify SHARED ${fortify_sources})
set_target_properties(hakmem_fortify PROPERTIES OUTPUT_NAME hakmem-fortify LINK_DEPENDS ${fortify_script})
target_link_libraries(hakmem_fortify PRIVATE hakmem_flags)
target_include_directories(hakmem_fortify PRIVATE ${PROJECT_SOURCE_DIR})
# A loop that does memcpy's work must not become a call of memcpy; a call of memcpy must stay one.
target_compile_options(hakmem_fortify PRIVATE
  -fno-builtin
  $<$<C_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>)
target_link_options(hakmem_fortify PRIVATE
  LINKER:--version-script=${fortify_script}
  LINKER:-z,now LINKER:-z,relro
  LINKER:-z,nodelete
  LINKER:--as-needed)
