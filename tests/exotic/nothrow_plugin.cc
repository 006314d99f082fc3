// A plugin that is linked with no C++ library: its nothrow forms are the host's, or who replaces malloc has them.
#include <new>

static const std::nothrow_t mine{}; /* std::nothrow is the C++ library's */

extern "C" void *plugin_new(unsigned long size) { return operator new(size, mine); }
extern "C" void plugin_delete(void *block) { operator delete(block); }
