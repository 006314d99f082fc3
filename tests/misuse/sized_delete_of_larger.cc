// A block of 200 bytes, deleted as one of 64.
#include <new>

#include "misuse/hide.h"

int main() { ::operator delete(hide(::operator new(200)), 64); }
