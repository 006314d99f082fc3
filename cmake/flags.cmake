# hakmem_flags: what every object of hakmem is compiled with, in every variant.
find_package(Threads REQUIRED)

# Our own business: a project that contains hakmem is not shown them.
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef -Wcast-align
             -Wcast-qual -Wstrict-prototypes -Wmissing-prototypes -Wvla)
if(NOT PROJECT_IS_TOP_LEVEL)
  set(warnings -w)
elseif(HAK_WERROR)
  list(APPEND warnings -Werror)
endif()

# The compiler must not turn the allocator's own code into calls of the allocator.
set(not_builtin malloc calloc realloc free aligned_alloc posix_memalign memalign)
list(TRANSFORM not_builtin PREPEND "-fno-builtin-")

# Ubuntu's compilers add checks that nobody asked for.  They would come before the fast paths, make
# a small process touch more of the library than its first piece (cmake/first.ld), and call what is
# not there yet when a process starts.
set(without_added_checks -fno-stack-protector -U_FORTIFY_SOURCE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  list(APPEND without_added_checks -fno-stack-clash-protection -fcf-protection=none)
endif()

# With -z now the indirection through the PLT buys nothing.  x86-64's linker turns a call through
# the table of addresses that stays inside the library into a direct one; aarch64's does not, and
# there most calls stay inside.
set(without_plt -fno-plt)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(without_plt "")
endif()

add_library(hakmem_flags INTERFACE)
target_include_directories(hakmem_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(hakmem_flags INTERFACE _GNU_SOURCE HAK_DEBUG=$<BOOL:${HAKMEM_ASSERTIONS}>)
target_compile_options(hakmem_flags INTERFACE
  ${warnings}
  ${not_builtin}
  ${without_added_checks}
  -fvisibility=hidden
  -ftls-model=initial-exec        # one load finds the thread's heap; costs 8 bytes of static TLS
  -fno-semantic-interposition     # our own calls of our own exported functions stay direct
  ${without_plt}
  -fno-lto                        # places in the library are said for each object (cmake/first.ld, cmake/whole.ld)
  -ffunction-sections -fdata-sections) # the texts of RESIDENT functions lie with them (cmake/first.ld)
target_link_libraries(hakmem_flags INTERFACE Threads::Threads)

# Whatever the configuration of a project that contains hakmem, or none: it is not made without.
if(NOT HAKMEM_ASSERTIONS)
  target_compile_options(hakmem_flags INTERFACE -O2)
endif()

if(HAK_SANITIZE)
  set(sanitize -fsanitize=${HAK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(hakmem_flags INTERFACE ${sanitize})
  target_link_options(hakmem_flags INTERFACE ${sanitize})
endif()
