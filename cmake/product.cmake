# libhakmem.so and libhakmem.a, from the same objects but for one, and their installation.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(version_script ${PROJECT_SOURCE_DIR}/src/api/hakmem.map)
set(first_script ${PROJECT_SOURCE_DIR}/cmake/first.ld)
set(whole_script ${PROJECT_SOURCE_DIR}/cmake/whole.ld)

add_library(hakmem SHARED ${shared_sources})
target_link_libraries(hakmem PRIVATE $<BUILD_INTERFACE:hakmem_objects> $<BUILD_INTERFACE:hakmem_flags>)

# The archive holds one object with hidden symbols made local: a program gets all of the library or
# nothing (its constructor included), and none of its internal names.
set(whole_object ${PROJECT_BINARY_DIR}/hakmem-whole.o)
add_custom_command(OUTPUT ${whole_object}
  COMMAND ${CMAKE_LINKER} -r -T ${whole_script} -o ${whole_object} $<TARGET_OBJECTS:hakmem_objects>
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole_object}
  DEPENDS hakmem_objects ${whole_script} $<TARGET_OBJECTS:hakmem_objects>
  COMMAND_EXPAND_LISTS VERBATIM)
add_library(hakmem_static STATIC ${whole_object})
set_target_properties(hakmem_static PROPERTIES OUTPUT_NAME hakmem EXPORT_NAME static LINKER_LANGUAGE C)

foreach(library hakmem hakmem_static)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
target_link_libraries(hakmem_static INTERFACE Threads::Threads)

set_target_properties(hakmem PROPERTIES LINK_DEPENDS "${version_script};${first_script}")
target_link_options(hakmem PRIVATE
  LINKER:--version-script=${version_script}
  LINKER:-T,${first_script}
  LINKER:-z,defs                       # every symbol is found at link time, weak ones excepted
  LINKER:-z,now LINKER:-z,relro
  LINKER:-z,noseparate-code            # one mapping for code and constants: every process makes them
  -nostartfiles                        # nothing in them that is needed, and four symbols to look up
  LINKER:-z,nodelete                   # blocks outlive a dlclose
  LINKER:--as-needed)

include(cmake/fortify.cmake)
include(cmake/oldest_glibc.cmake)

install(TARGETS hakmem hakmem_static EXPORT hakmem
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/hakmem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkgconfig_to_prefix /${pkgconfig_dir} /)
configure_file(cmake/hakmem.pc.in hakmem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hakmem.pc DESTINATION ${pkgconfig_dir})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)
configure_package_config_file(cmake/hakmem-config.cmake.in hakmem-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(hakmem-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hakmem-config.cmake ${PROJECT_BINARY_DIR}/hakmem-config-version.cmake
  DESTINATION ${package_dir})
install(EXPORT hakmem NAMESPACE hakmem:: FILE hakmem-targets.cmake DESTINATION ${package_dir})
