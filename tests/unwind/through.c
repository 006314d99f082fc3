/* through.c: a library between two functions of a program. */
int through(int (*function)(unsigned), unsigned depth);
int through(int (*function)(unsigned), unsigned depth) {
  volatile int result = function(depth);
  return result + 1;
}
