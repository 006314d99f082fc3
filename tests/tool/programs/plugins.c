/* plugins LIBRARY: loads it with the FLAGS (a macro) that it was compiled with. */
#define _GNU_SOURCE
#include <dlfcn.h>

int main(int argc, char **argv) { return argc > 1 && !dlopen(argv[1], FLAGS); }
