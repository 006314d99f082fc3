/* An interpreter that ends and begins again, with another one inside: embeds libpythonX.so CODE */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL(type, name, ...) ((type(*)())dlsym(python, #name))(__VA_ARGS__)

int main(int count, char **words) {
  static void *volatile kept[20];
  void *python = count == 3 ? dlopen(words[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  for (unsigned round = 0; python; round++) {
    CALL(void, Py_InitializeEx, 0);
    CALL(int, PyRun_SimpleString, words[2]);
    void *state = CALL(void *, PyThreadState_Get), *inner = CALL(void *, Py_NewInterpreter);
    CALL(int, PyRun_SimpleString, words[2]);
    CALL(void, Py_EndInterpreter, inner);
    CALL(void *, PyThreadState_Swap, state);
    CALL(int, Py_FinalizeEx);
    for (unsigned at = 0; at < 20; at++) free(kept[at]), kept[at] = malloc(30000);
    if (round == 1) puts("ready"), fflush(stdout);
  }
}
