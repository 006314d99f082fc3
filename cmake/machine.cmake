# The machines that hakmem is made for; on others it would compile, or nearly, and go wrong.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "hakmem is for Linux; this would be built for ${CMAKE_SYSTEM_NAME}")
endif()
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8 OR NOT CMAKE_C_BYTE_ORDER STREQUAL "LITTLE_ENDIAN")
  math(EXPR bits "8 * ${CMAKE_SIZEOF_VOID_P}")
  message(FATAL_ERROR "hakmem is for 64-bit little-endian processors (x86-64, aarch64); "
                      "this would be built for a ${bits}-bit ${CMAKE_C_BYTE_ORDER} one: ${CMAKE_SYSTEM_PROCESSOR}")
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|aarch64|arm64)$")
  message(WARNING "hakmem is tested on x86-64 and aarch64, not on ${CMAKE_SYSTEM_PROCESSOR}: run its tests there first; "
                  "call stacks end at their first frame, so profiles name allocation functions only")
endif()
