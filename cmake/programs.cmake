# The programs that the tool starts; they link the C library alone.
#   hakmem-replay   what `hakmem replay` runs, on whatever malloc is preloaded
#   hakmem-walk     walks the heaps of glibc's malloc in another process
file(GLOB walk_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/walk/*.c)
add_executable(hakmem_replay ${PROJECT_SOURCE_DIR}/replay/replay.c)
add_executable(hakmem_walk ${walk_sources})
set_target_properties(hakmem_replay PROPERTIES OUTPUT_NAME hakmem-replay)
set_target_properties(hakmem_walk PROPERTIES OUTPUT_NAME hakmem-walk)
set(hakmem_programs hakmem_replay hakmem_walk)
foreach(program ${hakmem_programs})
  # Ubuntu's compilers guard stacks and use checked functions by themselves: the oldest glibc that the
  # wheel is linked for (oldest_glibc.cmake) has neither in its table.
  target_compile_options(${program} PRIVATE ${warnings} -fPIE ${without_added_checks})
  target_link_libraries(${program} PRIVATE Threads::Threads)
  target_link_options(${program} PRIVATE -pie LINKER:-z,now LINKER:-z,relro LINKER:--as-needed)
endforeach()
