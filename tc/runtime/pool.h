// What a kernel gets from the process that runs it.  The generated sources declare the same types.

#ifndef TC_POOL_H
#define TC_POOL_H

#include <stdint.h>

// One scalar argument: signed integers and booleans in i, unsigned integers in u, float64 in d, other floats in f.
typedef union {
  int64_t i;
  uint64_t u;
  double d;
  float f;
} tc_scalar;

// Runs the iterations begin <= i < end.
typedef void tc_body(const void *context, int64_t begin, int64_t end);

typedef struct tc_runtime {
  // Splits lower <= i < upper into at most `threads` contiguous, balanced chunks and returns when all have run.
  void (*parallel_for)(void *pool, tc_body *body, const void *context, int64_t lower, int64_t upper,
                       int64_t threads);
  void *pool;
  int64_t threads;  // the most threads that this call may use
  int32_t *fault;   // 0 until an iteration stores something else
} tc_runtime;

// What every compiled kernel exports under the name tc_kernel.
typedef void tc_entry(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime);

// A launch as one block of 64-bit words: the buffers' addresses first, then the scalars.
typedef struct tc_launch {
  tc_entry *kernel;
  int64_t threads;
  int64_t buffers;
  uint64_t words[];
} tc_launch;

// Runs the kernel in the default floating-point environment and returns its fault.
int32_t tc_run(const tc_launch *launch);

#endif
