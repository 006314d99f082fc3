# What is installed: libraries, header files, hakmem.pc and the CMake package.  scripts/install adds
# the man pages. A project that contains hakmem installs none of it, and builds only what it links.
if(NOT HAKMEM_INSTALL)
  set_property(DIRECTORY PROPERTY EXCLUDE_FROM_ALL ON)
  return()
endif()

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS hakmem hakmem_static EXPORT hakmem
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET hakmem_fortify) # is preloaded, never linked
  install(TARGETS hakmem_fortify LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hakmem)
endif()
install(TARGETS hakmem_jemalloc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hakmem/jemalloc NAMELINK_SKIP)
install(TARGETS hakmem_je hakmem_rjem ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Below hakmem's own folder: jemalloc's header has the same name.
install(DIRECTORY include/jemalloc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hakmem)
install(TARGETS ${hakmem_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/hakmem)
install(DIRECTORY include/hakmem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkgconfig_to_prefix /${pkgconfig_dir} /)
set(pc_prefix "\${pcfiledir}/${pkgconfig_to_prefix}")
set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/hakmem.pc.in installed/hakmem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/installed/hakmem.pc DESTINATION ${pkgconfig_dir})
# The build tree's own: PKG_CONFIG_PATH=build.
set(pc_prefix ${PROJECT_SOURCE_DIR})
set(pc_libdir ${PROJECT_BINARY_DIR})
set(pc_includedir "\${prefix}/include")
configure_file(cmake/hakmem.pc.in hakmem.pc @ONLY)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)
configure_package_config_file(cmake/hakmem-config.cmake.in hakmem-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(hakmem-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hakmem-config.cmake ${PROJECT_BINARY_DIR}/hakmem-config-version.cmake
  DESTINATION ${package_dir})
install(EXPORT hakmem NAMESPACE hakmem:: FILE hakmem-targets.cmake DESTINATION ${package_dir})
# The build tree is a package, too: -Dhakmem_DIR=build.
export(EXPORT hakmem NAMESPACE hakmem:: FILE hakmem-targets.cmake)
