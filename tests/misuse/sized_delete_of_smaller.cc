// A block of 64 bytes, deleted as one of 5,000.
#include <new>

#include "misuse/hide.h"

int main() { ::operator delete(hide(::operator new(64)), 5000); }
