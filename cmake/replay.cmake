# hakmem-replay: what `hakmem replay` runs, on whatever malloc is preloaded.  It links the C library
# alone.
add_executable(hakmem_replay ${PROJECT_SOURCE_DIR}/replay/replay.c)
set_target_properties(hakmem_replay PROPERTIES OUTPUT_NAME hakmem-replay)
# Ubuntu's compilers guard stacks and use checked functions by themselves: the oldest glibc that the wheel
# is linked for (oldest_glibc.cmake) has neither in its table.
target_compile_options(hakmem_replay PRIVATE ${warnings} -fPIE ${without_added_checks})
target_link_libraries(hakmem_replay PRIVATE Threads::Threads)
target_link_options(hakmem_replay PRIVATE -pie LINKER:-z,now LINKER:-z,relro LINKER:--as-needed)
