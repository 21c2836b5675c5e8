// Calls on one thread, with nothing but the C library.

#include "call.h"

#include <fenv.h>
#include <stdlib.h>

static void run_all(const tc_runtime *runtime, tc_body *body, const void *context, int64_t lower, int64_t upper) {
  if (lower < upper) body(context, runtime->scratch, lower, upper);
}

int32_t tc_call(const tc_exported *kernel, void *const *buffers, const tc_scalar *scalars, int64_t threads) {
  (void)threads;
  if (kernel == NULL || kernel->entry == NULL) return TC_NOT_CALLED;
  int32_t fault = 0;
  tc_runtime runtime = {.parallel_for = run_all, .threads = 1, .fault = &fault};
  int64_t bytes = kernel->shared_bytes + kernel->scratch_bytes;
  if (bytes > 0) {
    runtime.shared = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    if (runtime.shared == NULL) return TC_NO_MEMORY;
    runtime.scratch = runtime.shared + kernel->shared_bytes;
    runtime.scratch_bytes = kernel->scratch_bytes;
  }
  fenv_t callers;
  fegetenv(&callers);
  fesetenv(FE_DFL_ENV);
  kernel->entry(buffers, scalars, &runtime);
  fesetenv(&callers);
  free(runtime.shared);
  return fault;
}
