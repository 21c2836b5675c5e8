// A CUDA driver without a GPU, for programs that a model was exported to: device memory is memory of this machine.
//
// Kernels are what their PTX says, as C (tests/cuda/ptx.py): `simulated_functions` names a library for each.  A stream
// that captures keeps what it is given, and a graph does it when it is launched.

#define _GNU_SOURCE
#include "simulated_functions.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 512, MOST_BLOCKS = 256, MOST_STEPS = 1024, ALIGNMENT = 256 };

typedef const char *ptx_run(int kernel, const uint32_t *sizes, const unsigned char *arguments, const uint64_t *ranges,
                            int count);

struct CUfunc_st {
  const simulated_function *known;
  ptx_run *run;
  int most_shared;
};

struct CUmod_st {
  const char *binary;
  int number;
};

struct CUstream_st {
  struct CUgraph_st *captured;
};

typedef enum { LAUNCH, FILL, COPY } kind;

// What a stream is given.
typedef struct {
  kind kind;
  CUfunction function;
  uint32_t sizes[7];
  unsigned char arguments[MOST_BYTES];
  CUdeviceptr target, source;
  size_t bytes;
  unsigned value;
} step;

struct CUgraph_st {
  int count;
  step steps[MOST_STEPS];
};

static uint64_t blocks[2 * MOST_BLOCKS];
static int block_count;
static int module_count, kernels_run;

static void fail(const char *what) {
  fprintf(stderr, "driver: %s\n", what);
  exit(3);
}

static CUresult do_step(const step *given) {
  switch (given->kind) {
  case FILL:
    for (size_t n = 0; n < given->bytes / 4; n++) ((uint32_t *)given->target)[n] = given->value;
    break;
  case COPY: memcpy((void *)given->target, (void *)given->source, given->bytes); break;
  case LAUNCH: {
    const CUfunction function = given->function;
    const char *failure = function->run(function->known->kernel, given->sizes, given->arguments, blocks, block_count);
    if (*failure) fail(failure);
    kernels_run++;
  }
  }
  return CUDA_SUCCESS;
}

static CUresult give(CUstream stream, const step *given) {
  if (stream == NULL || stream->captured == NULL) return do_step(given);
  if (stream->captured->count == MOST_STEPS) fail("a graph has too many steps");
  stream->captured->steps[stream->captured->count++] = *given;
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult cuDeviceGet(CUdevice *device, int number) {
  *device = number;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = (CUcontext)(uintptr_t)(device + 1);
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) { return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }

CUresult cuGetErrorString(CUresult error, const char **text) {
  switch (error) {
  case CUDA_ERROR_INVALID_VALUE: *text = "invalid argument"; break;
  case CUDA_ERROR_INVALID_IMAGE: *text = "device kernel image is invalid"; break;
  case CUDA_ERROR_NOT_FOUND: *text = "named symbol not found"; break;
  case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: *text = "operation not permitted when stream is capturing"; break;
  default: *text = "another error"; break;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  if (bytes == 0 || block_count == MOST_BLOCKS) return CUDA_ERROR_INVALID_VALUE;
  void *memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  memset(memory, 0xCB, bytes);
  *address = (CUdeviceptr)memory;
  blocks[2 * block_count] = *address;
  blocks[2 * block_count + 1] = *address + bytes;
  block_count++;
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) {
  for (int n = 0; n < block_count; n++) {
    if (blocks[2 * n] != address) continue;
    block_count--;
    memcpy(&blocks[2 * n], &blocks[2 * block_count], 2 * sizeof *blocks);
    free((void *)address);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyHtoD(CUdeviceptr address, const void *host, size_t bytes) {
  memcpy((void *)address, host, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void *host, CUdeviceptr address, size_t bytes) {
  memcpy(host, (void *)address, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  return give(stream, &(step){.kind = COPY, .target = target, .source = source, .bytes = bytes});
}

CUresult cuMemsetD32Async(CUdeviceptr target, unsigned value, size_t count, CUstream stream) {
  return give(stream, &(step){.kind = FILL, .target = target, .value = value, .bytes = 4 * count});
}

CUresult cuModuleLoadData(CUmodule *module, const void *binary) {
  if (memcmp(binary, "\x7f" "ELF", 4) != 0) return CUDA_ERROR_INVALID_IMAGE;
  *module = malloc(sizeof **module);
  **module = (struct CUmod_st){binary, module_count++};
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  free(module);
  return CUDA_SUCCESS;
}

// Bytes up to the tables of sections and segments, whichever ends later (ELF-64, the file header).
static size_t elf_size(const char *binary) {
  uint64_t tables[2];
  uint16_t counts[4];
  memcpy(tables, binary + 32, sizeof tables);
  memcpy(counts, binary + 54, sizeof counts);
  uint64_t segments = tables[0] + (uint64_t)counts[0] * counts[1], sections = tables[1] + (uint64_t)counts[2] * counts[3];
  return segments > sections ? segments : sections;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  if (memmem(module->binary, elf_size(module->binary), name, strlen(name) + 1) == NULL) return CUDA_ERROR_NOT_FOUND;
  for (int n = 0; n < simulated_function_count; n++) {
    if (simulated_functions[n].module != module->number || strcmp(simulated_functions[n].name, name) != 0) continue;
    void *library = dlopen(simulated_functions[n].library, RTLD_NOW);
    if (library == NULL) fail(dlerror());
    *function = malloc(sizeof **function);
    **function = (struct CUfunc_st){&simulated_functions[n], (ptx_run *)dlsym(library, "ptx_run"), 48 << 10};
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
  function->most_shared = value;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void **arguments, void **extra) {
  if (extra != NULL || gx * gy * gz == 0 || (int)shared > function->most_shared) return CUDA_ERROR_INVALID_VALUE;
  step given = {.kind = LAUNCH, .function = function, .sizes = {gx, gy, gz, bx, by, bz, shared}};
  size_t offset = 0;
  for (int n = 0; function->known->sizes[n] != 0; n++) {
    size_t size = (size_t)function->known->sizes[n];
    offset = (offset + size - 1) / size * size;
    if (offset + size > MOST_BYTES) fail("a kernel has too many arguments");
    memcpy(given.arguments + offset, arguments[n], size);
    offset += size;
  }
  return give(stream, &given);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  (void)flags;
  *stream = calloc(1, sizeof **stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
  free(stream);
  fprintf(stderr, "%d kernels\n", kernels_run);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  return stream != NULL && stream->captured != NULL ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  if (stream == NULL || stream->captured != NULL || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream->captured = calloc(1, sizeof *stream->captured);
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  *graph = stream->captured;
  stream->captured = NULL;
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  struct CUgraph_st *copied = malloc(sizeof *copied);
  *copied = *graph;
  *made = (CUgraphExec)copied;
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  const struct CUgraph_st *held = (const struct CUgraph_st *)graph;
  for (int n = 0; n < held->count; n++) give(stream, &held->steps[n]);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec graph) {
  free(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  free(graph);
  return CUDA_SUCCESS;
}
