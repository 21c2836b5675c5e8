// The kernels that exported_driver.c runs: by their names and modules, which are numbered as they are loaded, libraries
// with what they do, the number of the kernel there, and the sizes of its arguments, behind which is 0.

#ifndef SIMULATED_FUNCTIONS_H
#define SIMULATED_FUNCTIONS_H

#include <stdint.h>

typedef struct {
  const char *name;
  int module;
  const char *library;
  int kernel;
  int sizes[64];
} simulated_function;

extern const simulated_function simulated_functions[];
extern const int simulated_function_count;

#endif
