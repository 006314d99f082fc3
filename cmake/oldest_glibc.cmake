# wheel/libhakmem.so, wheel/libjemalloc.so, wheel/libhakmem-fortify.so and the tool's programs: the objects of
# libhakmem.so, linked for glibc 2.28 and newer (manylinux_2_28), whatever this machine has.  Which
# of a symbol's versions an object gets is decided by the file that it is linked with, so it is
# linked with files that have the names and versions of glibc 2.28 and nothing else
# (glibc-2.28.txt).  There threads and dlsym were libraries of their own; newer ones keep empty
# files of these names.  docs/decisions/0041. musl has no versions, but another name where wheels
# for it are installed. `scripts/wheel` builds the target `hakmem_wheel`; nothing else does.
set(glibc_table ${PROJECT_SOURCE_DIR}/cmake/glibc-2.28.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${glibc_table})
set(glibc_machine ${CMAKE_SYSTEM_PROCESSOR})
if(NOT HAK_IS_GLIBC)
  string(APPEND glibc_machine -musl)
endif()
file(STRINGS ${glibc_table} glibc_lines REGEX "^${glibc_machine} ")
if(NOT glibc_lines)
  return()
endif()

set(glibc_dir ${PROJECT_BINARY_DIR}/glibc-2.28)
set(glibc_files)
foreach(line ${glibc_lines})
  string(REPLACE " " ";" words "${line}")
  list(POP_FRONT words machine file version)
  if(NOT file IN_LIST glibc_files)
    list(APPEND glibc_files ${file})
    set(names_of_${file})
    set(versions_of_${file})
  endif()
  list(APPEND names_of_${file} ${words})
  list(JOIN words "; " names)
  if(version STREQUAL "-")
    set(version) # musl's symbols have none
  endif()
  string(APPEND versions_of_${file} "${version} { ${names}; };\n")
endforeach()

set(glibc_outputs)
foreach(file ${glibc_files})
  set(code)
  foreach(name ${names_of_${file}})
    string(APPEND code ".globl ${name}\n.type ${name}, %function\n${name}:\n")
  endforeach()
  file(CONFIGURE OUTPUT ${glibc_dir}/${file}.s CONTENT "${code}\t.long 0\n")
  file(CONFIGURE OUTPUT ${glibc_dir}/${file}.map CONTENT "${versions_of_${file}}")
  add_custom_command(OUTPUT ${glibc_dir}/${file}
    COMMAND ${CMAKE_C_COMPILER} -shared -nostdlib -Wl,-soname,${file} -Wl,--version-script=${file}.map -o ${file} ${file}.s
    DEPENDS ${glibc_dir}/${file}.s ${glibc_dir}/${file}.map
    WORKING_DIRECTORY ${glibc_dir} VERBATIM)
  list(APPEND glibc_outputs ${glibc_dir}/${file})
endforeach()
add_custom_target(hakmem_glibc DEPENDS ${glibc_outputs})

# What glibc gives to link into each library (pthread_atfork).
set(glibc_nonshared)
if(HAK_IS_GLIBC)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libc_nonshared.a
    OUTPUT_VARIABLE glibc_nonshared OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()

# links_with_oldest(TARGET OF FILES...): TARGET becomes what OF is, linked with these files.
function(links_with_oldest target of)
  get_target_property(options ${of} LINK_OPTIONS)
  get_target_property(depends ${of} LINK_DEPENDS)
  get_target_property(name ${of} OUTPUT_NAME)
  get_target_property(soversion ${of} SOVERSION)
  if(NOT name)
    set(name ${of})
  endif()
  set(soname lib${name}.so)
  if(soversion)
    string(APPEND soname .${soversion})
  endif()
  list(TRANSFORM ARGN PREPEND ${glibc_dir}/ OUTPUT_VARIABLE files)
  set_target_properties(${target} PROPERTIES
    EXCLUDE_FROM_ALL TRUE
    OUTPUT_NAME ${name}
    LINKER_LANGUAGE C
    NO_SONAME TRUE
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/wheel
    LINK_DEPENDS "${depends};${glibc_outputs}")
  add_dependencies(${target} hakmem_glibc)
  target_link_options(${target} PRIVATE
    ${options}
    LINKER:-soname,${soname}
    LINKER:--strip-debug # paths of this machine would be in the build id
    -nostdlib)
  # All of the files are needed, those with weak references alone too: a program without threads may
  # load some later. As one option: CMake would make -lc of a path to libc.so.6.
  list(JOIN files "," files)
  target_link_libraries(${target} PRIVATE
    -Wl,--push-state,--no-as-needed,${files},--pop-state ${glibc_nonshared} -lgcc)
endfunction()

# programs_with_oldest(FILES...): the tool's programs, linked with these files and what starts a program.
function(programs_with_oldest)
  list(TRANSFORM ARGN PREPEND ${glibc_dir}/)
  list(JOIN ARGN "," files)
  foreach(program ${hakmem_programs})
    string(REPLACE hakmem_ hakmem_wheel_ target ${program})
    add_executable(${target} $<TARGET_OBJECTS:${program}>)
    get_target_property(options ${program} LINK_OPTIONS)
    get_target_property(name ${program} OUTPUT_NAME)
    set_target_properties(${target} PROPERTIES
      EXCLUDE_FROM_ALL TRUE
      OUTPUT_NAME ${name}
      LINKER_LANGUAGE C
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/wheel
      LINK_DEPENDS "${glibc_outputs}")
    add_dependencies(${target} hakmem_glibc)
    target_link_options(${target} PRIVATE ${options} LINKER:--strip-debug -nodefaultlibs)
    target_link_libraries(${target} PRIVATE -Wl,${files} ${glibc_nonshared} -lgcc)
    add_dependencies(hakmem_wheel ${target})
  endforeach()
endfunction()

add_library(hakmem_wheel SHARED $<TARGET_OBJECTS:hakmem_objects> $<TARGET_OBJECTS:hakmem>)
add_library(hakmem_wheel_jemalloc SHARED $<TARGET_OBJECTS:hakmem_objects> $<TARGET_OBJECTS:hakmem_jemalloc>)
set_target_properties(hakmem_wheel_jemalloc PROPERTIES SUFFIX .so.2)
add_dependencies(hakmem_wheel hakmem_wheel_jemalloc)
if(NOT HAK_IS_GLIBC) # the name that musl has where wheels for it are installed; it knows itself by any that begins with libc.
  links_with_oldest(hakmem_wheel hakmem libc.musl-${CMAKE_SYSTEM_PROCESSOR}.so.1)
  links_with_oldest(hakmem_wheel_jemalloc hakmem_jemalloc libc.musl-${CMAKE_SYSTEM_PROCESSOR}.so.1)
  programs_with_oldest(libc.musl-${CMAKE_SYSTEM_PROCESSOR}.so.1)
  return()
endif()
links_with_oldest(hakmem_wheel hakmem libpthread.so.0 libdl.so.2 libc.so.6)
links_with_oldest(hakmem_wheel_jemalloc hakmem_jemalloc libpthread.so.0 libdl.so.2 libc.so.6)
programs_with_oldest(libpthread.so.0 libc.so.6)

add_library(hakmem_wheel_fortify SHARED $<TARGET_OBJECTS:hakmem_fortify>)
links_with_oldest(hakmem_wheel_fortify hakmem_fortify libdl.so.2 libc.so.6)
add_dependencies(hakmem_wheel hakmem_wheel_fortify)
