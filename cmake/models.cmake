# The model checker and its programs: each tests/model/model_<concept>.c is one
# (docs/decisions/0016).
#   libhakmem_model.a   src/ without a system below it, compiled so that every access to memory is a
#                       call
#   model_<concept>     scenarios, and broken variants of the sources that they must find
# It reads how gcc instruments, and switches stacks as x86-64's glibc lets it.
if(HAK_SANITIZE OR NOT CMAKE_C_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  return()
endif()

set(model_dir ${PROJECT_SOURCE_DIR}/tests/model)

# hakmem_instrumented: the sources and the scenarios.  <stdatomic.h> is that of the checker, and the
# first that is included: it also stands for the processor's `pause`.
add_library(hakmem_instrumented INTERFACE)
target_link_libraries(hakmem_instrumented INTERFACE hakmem_flags)
target_include_directories(hakmem_instrumented SYSTEM INTERFACE ${model_dir}/checker/include)
target_compile_options(hakmem_instrumented INTERFACE
  -include stdatomic.h
  -fsanitize=thread
  -fno-tree-loop-distribute-patterns) # no calls of memset and memcpy, which are not instrumented

set(model_sources ${hakmem_sources})
list(FILTER model_sources EXCLUDE REGEX "/src/(api|observe)/|/src/os/os_linux[^/]*\\.c$|/src/stack/unwind[^/]*\\.c$")
add_library(hakmem_model STATIC ${model_sources})
target_link_libraries(hakmem_model PRIVATE hakmem_instrumented)

file(GLOB checker_sources CONFIGURE_DEPENDS ${model_dir}/checker/*.c)
add_library(model_checker STATIC ${checker_sources})
target_link_libraries(model_checker PRIVATE hakmem_flags)
target_compile_options(model_checker PRIVATE -O2)

file(GLOB models CONFIGURE_DEPENDS ${model_dir}/model_*.c)
foreach(source ${models})
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${model_dir}/checker)
  target_link_libraries(${name} PRIVATE hakmem_instrumented hakmem_model model_checker)
  # Only the compiler instruments; what it calls is the checker's.
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY model)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 COST 10)
endforeach()

include(cmake/coherence.cmake)
