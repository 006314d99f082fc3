// A block of 5,000 bytes, deleted as one of 64.
#include <new>

#include "misuse/hide.h"

int main() { ::operator delete(hide(::operator new(5000)), 64); }
