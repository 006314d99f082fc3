# Libraries that only tests link, the fuzz targets (tests/fuzz), and the C unit tests: each
# tests/unit/test_<concept>.c is one program.
#   libhakmem_core.a   the product under its hak_* names only
#   libhakmem_fake.a   the same on the fake operating system (tests/fake)
set(core_objects $<FILTER:$<TARGET_OBJECTS:hakmem_objects>,EXCLUDE,/api/override[^/]*\\.c\\.o$|/src/jemalloc/>)
set(fake_objects $<FILTER:${core_objects},EXCLUDE,/os/os_linux[^/]*\\.c\\.o$>)
add_library(hakmem_core STATIC ${core_objects})
add_library(hakmem_fake STATIC ${fake_objects} tests/fake/os_fake.c)
set_target_properties(hakmem_core PROPERTIES LINKER_LANGUAGE C)
foreach(library hakmem_core hakmem_fake)
  target_link_libraries(${library} PUBLIC hakmem_flags)
endforeach()
target_include_directories(hakmem_fake PUBLIC ${PROJECT_SOURCE_DIR}/tests)

enable_testing()

# Fuzz targets: with libFuzzer in a tree of their own, else with a replay of their corpus and of
# made inputs.
set(fuzz_inputs_of_sequence 75)
set(fuzz_inputs_of_options 1000)
foreach(target sequence options)
  set(name fuzz_${target})
  add_executable(${name} tests/fuzz/${target}.c)
  target_link_libraries(${name} PRIVATE hakmem_fake)
  if(HAK_SANITIZE MATCHES "fuzzer")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    continue()
  endif()
  target_sources(${name} PRIVATE tests/fuzz/replay.c)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY fuzz)
  if(NOT HAK_SANITIZE STREQUAL "thread") # its processes fork first and start threads in the child
    add_test(NAME ${name} COMMAND ${name} ${fuzz_inputs_of_${target}}
      ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${target})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
  endif()
endforeach()
if(HAK_SANITIZE MATCHES "fuzzer")
  return()
endif()

find_library(CMOCKA_LIBRARY cmocka)
if(NOT CMOCKA_LIBRARY)
  if(CMAKE_CROSSCOMPILING)
    message(STATUS "hakmem: no unit tests, as there is no libcmocka for ${CMAKE_SYSTEM_PROCESSOR}")
    return()
  endif()
  message(FATAL_ERROR "hakmem: the unit tests need libcmocka (Debian: libcmocka-dev)")
endif()
# Real threads, time and system calls.
set(on_the_real_system test_concurrency test_lock test_os_linux test_os_linux_keeper test_records_apart test_siblings)

# Where threads meet.  Those that fork first and start threads in the child are beyond the
# sanitizer.
set(worth_a_thread_sanitizer test_concurrency test_lock test_named_heap_threads)

# The thread sanitizer sees a race in the first rounds or not at all, and makes each forty times as
# long.
set(rounds 25000)
if(HAK_SANITIZE STREQUAL "thread")
  set(rounds 5000)
  set(argument_of_test_concurrency 20000)
endif()

file(GLOB unit_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/test_*.c)
foreach(source ${unit_tests})
  cmake_path(GET source STEM name)
  if(HAK_SANITIZE STREQUAL "thread" AND NOT name IN_LIST worth_a_thread_sanitizer)
    continue()
  endif()
  add_executable(${name} ${source})
  if(name IN_LIST on_the_real_system)
    target_link_libraries(${name} PRIVATE hakmem_core ${CMOCKA_LIBRARY})
  else()
    target_link_libraries(${name} PRIVATE hakmem_fake ${CMOCKA_LIBRARY})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY unit)
  add_test(NAME ${name} COMMAND ${name} ${argument_of_${name}})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
  if(name IN_LIST on_the_real_system)
    set_tests_properties(${name} PROPERTIES LABELS real_system)
  endif()
endforeach()

# A test that is called TARGET.WAY runs the program once more.  Here with every block that can be
# guarded guarded, and the ticker beside it.
add_test(NAME test_concurrency.guarded COMMAND test_concurrency ${rounds})
set_tests_properties(test_concurrency.guarded PROPERTIES ENVIRONMENT "HAKMEM_GUARD=1;HAKMEM_GUARD_RATE=1")

# And here with a profile on, in which one block in a few is a sample.
add_test(NAME test_concurrency.profiled COMMAND test_concurrency ${rounds})
set_tests_properties(test_concurrency.profiled PROPERTIES ENVIRONMENT "HAKMEM_PROFILE=256")

# The long ones come first, longest first: no processor is left alone at the end.
set_tests_properties(test_concurrency test_concurrency.guarded test_concurrency.profiled
  PROPERTIES TIMEOUT 400 COST 8 LABELS real_system)
if(NOT HAK_SANITIZE STREQUAL "thread")
  set_tests_properties(test_failure fuzz_sequence test_guarded PROPERTIES COST 9)
endif()

include(cmake/models.cmake)
