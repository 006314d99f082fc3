# The toolchain of the aarch64 trees: Debian's cross compilers, and QEMU's user emulation for what
# is run (tests/aarch64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

# The C library, and the one of the unit tests, which the machine does not have:
# tests/aarch64/packages.py fetches it.
set(aarch64_root /usr/aarch64-linux-gnu)
set(aarch64_fetched ${CMAKE_CURRENT_LIST_DIR}/../build/arm64/root/root/usr)
set(CMAKE_FIND_ROOT_PATH ${aarch64_root} ${aarch64_fetched}/..)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
include_directories(SYSTEM ${aarch64_fetched}/include)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${aarch64_root})
