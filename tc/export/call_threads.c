// Calls on many threads: those of pool.c, which stay for the next call.

#include "call.h"

#include <stdlib.h>
#include <string.h>

int32_t tc_call(const tc_exported *kernel, void *const *buffers, const tc_scalar *scalars, int64_t threads) {
  if (kernel == NULL || kernel->entry == NULL) return TC_NOT_CALLED;
  size_t words = (size_t)(kernel->operand_count + kernel->scalar_count);
  tc_launch *launch = malloc(sizeof(tc_launch) + words * sizeof(uint64_t));
  if (launch == NULL) return TC_NO_MEMORY;
  launch->kernel = kernel->entry;
  launch->threads = kernel->most_threads > 0 && kernel->most_threads < threads ? kernel->most_threads : threads;
  launch->shared_bytes = kernel->shared_bytes;
  launch->scratch_bytes = kernel->scratch_bytes;
  launch->buffers = kernel->operand_count;
  if (kernel->operand_count > 0) memcpy(launch->words, buffers, (size_t)kernel->operand_count * sizeof(uint64_t));
  if (kernel->scalar_count > 0)
    memcpy(launch->words + kernel->operand_count, scalars, (size_t)kernel->scalar_count * sizeof(uint64_t));
  int32_t fault = tc_run(launch);
  free(launch);
  return fault;
}
