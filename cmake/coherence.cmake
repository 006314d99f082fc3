# lab/coherence: src/ as the product has it, but each access to memory is a call; not the part that
# talks to the system (docs/decisions/0050).
set(coherence_dir ${PROJECT_SOURCE_DIR}/lab/coherence)
set(seen_sources ${hakmem_sources} ${coherence_dir}/heap.c)
list(FILTER seen_sources EXCLUDE REGEX "/src/(api|observe)/")
set(unseen_sources ${seen_sources})
list(FILTER unseen_sources INCLUDE REGEX "/src/(os/os_linux|stack/)[^/]*\\.c$")
list(REMOVE_ITEM seen_sources ${unseen_sources})

foreach(part seen unseen)
  add_library(coherence_${part} STATIC EXCLUDE_FROM_ALL ${${part}_sources})
  target_link_libraries(coherence_${part} PRIVATE hakmem_flags)
  target_include_directories(coherence_${part} PRIVATE ${coherence_dir})
  target_compile_options(coherence_${part} PRIVATE -UHAK_DEBUG -DHAK_DEBUG=0 -O2)
endforeach()
target_compile_options(coherence_seen PRIVATE
  -include coherence.h -D__builtin_ia32_pause=coherence_pause
  -fsanitize=thread
  -fno-tree-loop-distribute-patterns) # no calls of memset and memcpy, which are not instrumented

# The linker prefers the functions of system.c to those of the same name in the libraries.
add_executable(coherence EXCLUDE_FROM_ALL ${coherence_dir}/system.c ${coherence_dir}/accesses.c ${coherence_dir}/machine.c
  ${coherence_dir}/loads.c)
target_compile_options(coherence PRIVATE -UHAK_DEBUG -DHAK_DEBUG=0 -O2 -Wno-builtin-declaration-mismatch)
target_link_libraries(coherence PRIVATE coherence_seen coherence_unseen coherence_seen hakmem_flags)
target_link_options(coherence PRIVATE -no-pie -Wl,-z,muldefs)
