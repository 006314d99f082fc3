// A block of 3 MB, deleted as one of 64 bytes.
#include <new>

#include "misuse/hide.h"

int main() { ::operator delete(hide(::operator new(3000000)), 64); }
