# What programs on jemalloc switch to (docs/guides/JEMALLOC.md): all of hakmem under jemalloc's name.
#   compat/libjemalloc.so.2   for programs that are linked to Debian's
#   compat/libhakmem-je.a     with include/jemalloc, for programs that bring a jemalloc with the
#                             prefix je_ along: it replaces no malloc but that
set(compat_folder ${PROJECT_BINARY_DIR}/compat)

add_library(hakmem_jemalloc SHARED ${shared_sources} ${jemalloc_sources})
target_link_libraries(hakmem_jemalloc PRIVATE hakmem_objects hakmem_flags)
set_target_properties(hakmem_jemalloc PROPERTIES
  OUTPUT_NAME jemalloc
  SOVERSION 2
  LIBRARY_OUTPUT_DIRECTORY ${compat_folder}
  LINK_DEPENDS "${version_script};${first_script}")
target_link_options(hakmem_jemalloc PRIVATE ${shared_link_options})

set(je_names ${PROJECT_SOURCE_DIR}/cmake/je_names.txt)
set(je_object ${PROJECT_BINARY_DIR}/hakmem-je.o)
add_library(hakmem_je_objects OBJECT ${jemalloc_sources})
target_link_libraries(hakmem_je_objects PRIVATE hakmem_flags)
add_custom_command(OUTPUT ${je_object}
  COMMAND ${CMAKE_LINKER} -r -T ${whole_script} -o ${je_object} ${objects_of_archive} $<TARGET_OBJECTS:hakmem_je_objects>
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden --redefine-sym _dl_find_object@=_dl_find_object --redefine-syms=${je_names} ${je_object}
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=hak_* --keep-global-symbol=je_* ${je_object}
  COMMAND ${CMAKE_OBJCOPY} --globalize-symbol=_.stapsdt.base ${je_object}
  DEPENDS hakmem_objects hakmem_je_objects ${whole_script} ${je_names} ${objects_of_archive} $<TARGET_OBJECTS:hakmem_je_objects>
  COMMAND_EXPAND_LISTS VERBATIM)
add_library(hakmem_je STATIC ${je_object})
set_target_properties(hakmem_je PROPERTIES
  OUTPUT_NAME hakmem-je
  ARCHIVE_OUTPUT_DIRECTORY ${compat_folder}
  LINKER_LANGUAGE C)
