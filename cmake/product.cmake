# libhakmem.so and libhakmem.a, from the same objects but for a few that the first has more.
#   hakmem::hakmem   the shared library
#   hakmem::static   the archive
# Both names are those that find_package(hakmem) gives, too (cmake/install.cmake).

# The number of the binary interface, as in libhakmem.so.0.  It rises when programs that are linked
# with the library have to be linked anew (tests/shape/test_abi.py); what is only added raises the
# version.
set(hakmem_soversion 0)

set(version_script ${PROJECT_SOURCE_DIR}/src/api/hakmem.map)
set(first_script ${PROJECT_SOURCE_DIR}/cmake/first.ld)
set(whole_script ${PROJECT_SOURCE_DIR}/cmake/whole.ld)

add_library(hakmem SHARED ${shared_sources})
target_link_libraries(hakmem PRIVATE $<BUILD_INTERFACE:hakmem_objects> $<BUILD_INTERFACE:hakmem_flags>)

# The archive holds one object with hidden symbols made local: a program gets all of the library or
# nothing (its constructor included), and none of its internal names.  A symbol that is asked for
# without a version (src/base/compiler.h) has a name that only GNU's linker knows: here, where the
# program's linker looks, its own. The base of all USDT probes is one symbol, in a section that the
# linker takes from the first object that has it.
set(objects_of_archive $<TARGET_OBJECTS:hakmem_objects>)
set(whole_object ${PROJECT_BINARY_DIR}/hakmem-whole.o)
add_custom_command(OUTPUT ${whole_object}
  COMMAND ${CMAKE_LINKER} -r -T ${whole_script} -o ${whole_object} ${objects_of_archive}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden --redefine-sym _dl_find_object@=_dl_find_object ${whole_object}
  COMMAND ${CMAKE_OBJCOPY} --globalize-symbol=_.stapsdt.base ${whole_object}
  DEPENDS hakmem_objects ${whole_script} ${objects_of_archive}
  COMMAND_EXPAND_LISTS VERBATIM)
add_library(hakmem_static STATIC ${whole_object})
set_target_properties(hakmem_static PROPERTIES OUTPUT_NAME hakmem EXPORT_NAME static LINKER_LANGUAGE C)

foreach(library hakmem hakmem_static)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
endforeach()
target_link_libraries(hakmem_static INTERFACE -pthread)
add_library(hakmem::hakmem ALIAS hakmem)
add_library(hakmem::static ALIAS hakmem_static)

set_target_properties(hakmem PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${hakmem_soversion}
  LINK_DEPENDS "${version_script};${first_script}")
set(shared_link_options
  LINKER:--version-script=${version_script}
  LINKER:-T,${first_script}
  LINKER:-z,defs                       # every symbol is found at link time, weak ones excepted
  LINKER:-z,now LINKER:-z,relro
  LINKER:-z,noseparate-code            # one mapping for code and constants: every process makes them
  -nostartfiles                        # nothing in them that is needed, and four symbols to look up
  LINKER:-z,nodelete                   # blocks outlive a dlclose
  LINKER:--as-needed)
target_link_options(hakmem PRIVATE ${shared_link_options})

include(cmake/fortify.cmake)
include(cmake/jemalloc.cmake)
include(cmake/programs.cmake)
include(cmake/oldest_glibc.cmake)
include(cmake/install.cmake)
