/* What loading_host.cc loads. */
void host_is_loading(void);

__attribute__((constructor)) static void at_load(void) { host_is_loading(); }
