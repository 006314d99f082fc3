# cmake ninja-build ccache cppcheck clang-tidy g++
printf 'cmake_minimum_required(VERSION 3.20)\nproject(a C CXX)\nforeach(i RANGE 20)\nadd_library(l${i} a.cc)\nendforeach()\n' >CMakeLists.txt
echo '#include <vector>
int f(){return std::vector<int>(3).size();}' >a.cc
export CCACHE_DIR=$WORK/c
$ON cmake -G Ninja -B b -DCMAKE_CXX_COMPILER_LAUNCHER=ccache . >/dev/null && $ON ninja -C b >/dev/null && $ON ninja -C b -t clean >/dev/null && $ON ninja -C b >/dev/null && ls b/*.a | wc -l
$ON cppcheck -q a.cc
$ON clang-tidy a.cc -- 2>>err | wc -l
