/* plugin.c: a library that is loaded, called and unloaded again (reload.c).  Made several times
 * with frames of another size, FRAME_BYTES, and the same length of code, so that each lies where
 * the one before lay, with another rule. */

__attribute__((visibility("default"))) int plugin_call(int (*top)(void), int depth);

__attribute__((noinline)) static int inner(int (*top)(void), int depth) {
  volatile char frame[FRAME_BYTES];
  frame[0] = (char)depth;
  frame[FRAME_BYTES - 1] = 1;
  int result = depth ? inner(top, depth - 1) : top();
  return result + frame[FRAME_BYTES - 1];
}

int plugin_call(int (*top)(void), int depth) { return inner(top, depth) + 1; }
