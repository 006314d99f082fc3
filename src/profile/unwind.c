#include "profile/unwind.h"

#include "os/os.h"

/* What a frame pointer leads to: the caller's, and the return address. */
struct frame {
  uintptr_t caller, return_address;
};

/* By frame pointers alone. */
NOINLINE size_t unwind_stack(uintptr_t *frames, size_t max, bool *is_complete) {
  enum { FRAME_BYTES_MAX = 1 << 20 };
  uintptr_t at = FRAME_ADDRESS();
  struct frame frame;
  size_t count = 0;
  while (count < max && os_read_safely(&frame, (const void *)at, sizeof frame) &&
         frame.return_address) {
    frames[count++] = frame.return_address;
    if (frame.caller <= at || frame.caller - at > FRAME_BYTES_MAX) break;
    at = frame.caller;
  }
  *is_complete = false;
  return count;
}
