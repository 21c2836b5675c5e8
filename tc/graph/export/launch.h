// Loads and launches the kernels of kernels.c, by the driver of CUDA.

#ifndef TC_LAUNCH_H
#define TC_LAUNCH_H

#include "call.h"

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

enum {
  TC_MOST_ARGUMENTS = 64,            // of a kernel
  TC_TEMPORARY_ALIGNMENT = 256,      // where temporaries begin
  TC_STATIC_SHARED_BYTES = 48 << 10  // sources declare no more shared memory themselves
};

static unsigned tc_dynamic_bytes(const tc_grid *grid) {
  return grid->shared_bytes > TC_STATIC_SHARED_BYTES ? (unsigned)grid->shared_bytes : 0;
}

// The kernel's module in the current context, and the function of each of its grids.
static CUresult tc_load_kernel(const tc_exported *kernel, const void *binary, CUmodule *module, CUfunction *functions) {
  CUresult result = cuModuleLoadData(module, binary);
  for (int64_t n = 0; n < kernel->grid_count && result == CUDA_SUCCESS; n++) {
    const tc_grid *grid = &kernel->grids[n];
    if (grid->argument_count > TC_MOST_ARGUMENTS) return CUDA_ERROR_INVALID_VALUE;
    result = cuModuleGetFunction(&functions[n], *module, grid->name);
    if (result != CUDA_SUCCESS || tc_dynamic_bytes(grid) == 0) continue;
    result = cuFuncSetAttribute(functions[n], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)grid->shared_bytes);
  }
  return result;
}

static CUdeviceptr tc_temporary(const tc_exported *kernel, CUdeviceptr temporaries, int64_t number) {
  for (int64_t n = 0; n < number; n++)
    temporaries += (CUdeviceptr)(kernel->temporaries[n] + TC_TEMPORARY_ALIGNMENT - 1) / TC_TEMPORARY_ALIGNMENT *
                   TC_TEMPORARY_ALIGNMENT;
  return temporaries;
}

// Starts the grids of a kernel.  `temporaries`: where its memory begins.  `fault`: the address of its int32_t.
static CUresult tc_launch_kernel(const tc_exported *kernel, const CUfunction *functions, CUdeviceptr *operands,
                                 CUdeviceptr temporaries, CUdeviceptr fault, CUstream stream) {
  for (int64_t n = 0; n < kernel->grid_count; n++) {
    const tc_grid *grid = &kernel->grids[n];
    CUdeviceptr addresses[TC_MOST_ARGUMENTS];
    int32_t steps[TC_MOST_ARGUMENTS];
    void *arguments[TC_MOST_ARGUMENTS];
    for (int64_t i = 0; i < grid->argument_count; i++) {
      int64_t number = grid->arguments[i].number;
      arguments[i] = &addresses[i];
      switch (grid->arguments[i].place) {
      case TC_BUFFER: arguments[i] = &operands[number]; break;
      case TC_TEMPORARY: addresses[i] = tc_temporary(kernel, temporaries, number); break;
      case TC_FAULT: addresses[i] = fault; break;
      case TC_STEP:
        steps[i] = (int32_t)number;
        arguments[i] = &steps[i];
        break;
      case TC_SCALAR: return CUDA_ERROR_INVALID_VALUE;  // kernels of models take none
      }
    }
    CUresult result = cuLaunchKernel(functions[n], (unsigned)grid->blocks[0], (unsigned)grid->blocks[1],
                                     (unsigned)grid->blocks[2], (unsigned)grid->threads[0], (unsigned)grid->threads[1],
                                     (unsigned)grid->threads[2], tc_dynamic_bytes(grid), stream, arguments, NULL);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

#endif
