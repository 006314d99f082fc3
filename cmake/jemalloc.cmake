# What programs on jemalloc switch to (docs/guides/JEMALLOC.md): all of hakmem under jemalloc's name.
#   compat/libjemalloc.so.2   for programs that are linked to Debian's
#   compat/libhakmem-je.a     for programs that bring a jemalloc along: no other malloc is replaced
set(compat_folder ${PROJECT_BINARY_DIR}/compat)

add_library(hakmem_jemalloc SHARED ${shared_sources} ${jemalloc_sources})
target_link_libraries(hakmem_jemalloc PRIVATE hakmem_objects hakmem_flags)
set_target_properties(hakmem_jemalloc PROPERTIES
  OUTPUT_NAME jemalloc
  EXPORT_COMPILE_COMMANDS OFF # other targets compile the same sources, so make lint reads them once
  SOVERSION 2
  LIBRARY_OUTPUT_DIRECTORY ${compat_folder}
  LINK_DEPENDS "${version_script};${first_script}")
target_link_options(hakmem_jemalloc PRIVATE ${shared_link_options})

# Archives whose names have a prefix: libhakmem-je.a, as redis' and valkey's own jemalloc, and
# libhakmem-rjem.a, as that of Rust's crate tikv-jemalloc-sys (JEMALLOC_OVERRIDE).
set(prefixed_names
  malloc calloc realloc free posix_memalign aligned_alloc memalign valloc malloc_usable_size
  free_sized free_aligned_sized # from jemalloc 5.3.1 on
  mallocx rallocx xallocx sallocx dallocx sdallocx nallocx
  mallctl mallctlnametomib mallctlbymib malloc_stats_print malloc_conf malloc_message
  get_defrag_hint)
add_library(hakmem_jemalloc_objects OBJECT ${jemalloc_sources})
target_link_libraries(hakmem_jemalloc_objects PRIVATE hakmem_flags)
set(objects_of_prefixed ${objects_of_archive} $<TARGET_OBJECTS:hakmem_jemalloc_objects>)
foreach(archive je rjem)
  set(prefix je_)
  if(archive STREQUAL rjem)
    set(prefix _rjem_)
  endif()
  set(renamed ${prefixed_names})
  list(TRANSFORM renamed REPLACE "(.+)" "--redefine-sym;\\1=${prefix}\\1")
  set(object ${PROJECT_BINARY_DIR}/hakmem-${archive}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_LINKER} -r -T ${whole_script} -o ${object} ${objects_of_prefixed}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden --redefine-sym _dl_find_object@=_dl_find_object ${renamed} ${object}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=hak_* --keep-global-symbol=${prefix}* ${object}
    COMMAND ${CMAKE_OBJCOPY} --globalize-symbol=_.stapsdt.base ${object}
    DEPENDS hakmem_objects hakmem_jemalloc_objects ${whole_script} ${objects_of_prefixed}
    COMMAND_EXPAND_LISTS VERBATIM)
  add_library(hakmem_${archive} STATIC ${object})
  set_target_properties(hakmem_${archive} PROPERTIES
    OUTPUT_NAME hakmem-${archive}
    ARCHIVE_OUTPUT_DIRECTORY ${compat_folder}
    LINKER_LANGUAGE C)
endforeach()
