// A CUDA driver without a GPU, for tests: device memory is memory of this machine, kernels are run by the test.
//
// It offers the calls that the run time needs, under the name of the real library, and keeps a log of them.  Two
// devices, of compute capability 9.0 and 8.0, or both of 9.0.  Work is done at once; while the devices are held, events stay pending.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, NO_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600 };
enum { CAPTURE_UNSUPPORTED = 900, CAPTURE_IMPLICIT = 906 };
enum { RELAXED = 2 };  // a thread that may do what could disturb captures
enum { DEVICES = 2, GONE = -1, CONTEXTS = 16, BLOCKS = 4096, LOG_BYTES = 1 << 20 };

typedef int status;
typedef struct { int device; } context;
typedef struct { const void *code; } library;
typedef struct { const library *library; char name[64]; } kernel;
typedef struct { int pending; } event;
typedef struct { uintptr_t begin, end; int device, of_graph; const context *owner; } block;

// Runs one kernel, and says what the driver would.
typedef status launcher(const void *code, const char *name, const uint32_t *sizes, uintptr_t stream, const void *arguments,
                        size_t bytes);

// Puts arguments at these addresses where the kernel expects them; how many bytes they take.
typedef size_t gatherer(const void *code, const char *name, void **parameters, char *arguments, size_t room);

static launcher *launch_kernel;
static gatherer *gather_arguments;
static context primary[DEVICES] = {{0}, {1}};
static _Thread_local context *stack[CONTEXTS];
static _Thread_local int depth, capture_mode;
static uintptr_t captured;
static int capture_blocks, capture_broken;
static block blocks[BLOCKS];
static int block_count, held, live_events, pools = 1;
static event *pending[BLOCKS];
static int pending_count;
static char log_text[LOG_BYTES];
static size_t log_length;
static char failing[64];
static status failing_with;
static int failing_times;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *format, ...) {
  va_list values;
  va_start(values, format);
  pthread_mutex_lock(&lock);
  if (log_length < LOG_BYTES - 256) log_length += vsnprintf(log_text + log_length, 256, format, values);
  if (log_length < LOG_BYTES - 1) log_text[log_length++] = '\n';
  pthread_mutex_unlock(&lock);
  va_end(values);
}

// What the test asked this call to fail with.
static status asked(const char *name) {
  if (failing_times == 0 || strcmp(failing, name) != 0) return SUCCESS;
  failing_times -= 1;
  return failing_with;
}

#define CALL(...)                                   \
  do {                                              \
    say(__VA_ARGS__);                               \
    status wanted = asked(__func__);                \
    if (wanted) return wanted;                      \
  } while (0)

void simulator_launches(launcher *function, gatherer *other) {
  launch_kernel = function;
  gather_arguments = other;
}

void simulator_fail(const char *name, status with, int times) {
  failing_with = with;
  failing_times = times;
  snprintf(failing, sizeof failing, "%s", name);
}

// Holds back all work, or lets it happen.
void simulator_hold(int hold) {
  pthread_mutex_lock(&lock);
  held = hold;
  for (int n = 0; !hold && n < pending_count; n += 1) pending[n]->pending = 0;
  if (!hold) pending_count = 0;
  pthread_mutex_unlock(&lock);
}

// The log since it was last taken.
const char *simulator_log(void) {
  static char taken[LOG_BYTES];
  pthread_mutex_lock(&lock);
  memcpy(taken, log_text, log_length);
  taken[log_length] = 0;
  log_length = 0;
  pthread_mutex_unlock(&lock);
  return taken;
}

int simulator_blocks(void) {
  int count = 0;
  for (int n = 0; n < block_count; n += 1) count += blocks[n].begin != 0;
  return count;
}

// Where the memory that is in use begins and ends.
int simulator_ranges(uint64_t *found, int most) {
  int count = 0;
  for (int n = 0; n < block_count && count < most; n += 1) {
    if (!blocks[n].begin) continue;
    found[2 * count] = blocks[n].begin;
    found[2 * count + 1] = blocks[n].end;
    count += 1;
  }
  return count;
}

int simulator_events(void) { return live_events; }

static void *reserve(size_t size, int device, const context *owner) {
  void *memory = malloc(size ? size : 1);
  memset(memory, 0xCB, size);
  pthread_mutex_lock(&lock);
  if (block_count == BLOCKS) abort();
  blocks[block_count++] = (block){(uintptr_t)memory, (uintptr_t)memory + size, device, 0, owner};
  pthread_mutex_unlock(&lock);
  return memory;
}

static status give_back(uintptr_t address) {
  status found = INVALID_VALUE;
  pthread_mutex_lock(&lock);
  for (int n = 0; n < block_count; n += 1) {
    if (blocks[n].begin != address) continue;
    blocks[n] = (block){0};
    found = SUCCESS;
  }
  pthread_mutex_unlock(&lock);
  if (found == SUCCESS) free((void *)address);
  return found;
}

static block *block_at(uintptr_t address) {
  for (int n = 0; n < block_count; n += 1) {
    if (blocks[n].begin == address) return &blocks[n];
  }
  return NULL;
}

// What the stream is given becomes part of a graph; 0 ends that.  ``blocks``: the default stream would wait for it.
// Says what is wrong with the graph that ends (CUDA Programming Guide, "Prohibited and Unhandled Operations" of captures
// and "Graph Memory Nodes").
const char *simulator_capture(uintptr_t stream, int blocks_default) {
  static char found[64];
  int open = 0;
  for (int n = 0; n < block_count; n += 1) {
    open += blocks[n].begin && blocks[n].of_graph;
    blocks[n].of_graph = 0;
  }
  snprintf(found, sizeof found, "%s", capture_broken ? "invalidated" : "");
  if (!capture_broken && open) snprintf(found, sizeof found, "%d allocations that are not freed", open);
  captured = stream;
  capture_blocks = blocks_default;
  capture_broken = 0;
  return found;
}

// An operation that is not allowed during a capture, which ends with an error then.
static status forbidden(status why) {
  capture_broken = 1;
  return why;
}

static int is_default(uintptr_t stream) { return stream <= 1; }

// The default stream must not be given anything while one captures that it would wait for.
static status usable(uintptr_t stream) {
  return captured && capture_blocks && is_default(stream) ? forbidden(CAPTURE_IMPLICIT) : SUCCESS;
}

#define USE(stream)                          \
  do {                                       \
    status allowed = usable(stream);         \
    if (allowed) return allowed;             \
  } while (0)

static context *current(void) { return depth ? stack[depth - 1] : NULL; }

static int is_primary(const context *asked_for) { return asked_for >= primary && asked_for < primary + DEVICES; }

status cuInit(unsigned flags) { (void)flags; return asked("cuInit"); }

status cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }

status cuGetErrorString(status error, const char **text) {
  switch (error) {
  case 1: *text = "invalid argument"; break;
  case 2: *text = "out of memory"; break;
  case 201: *text = "invalid device context"; break;
  case 700: *text = "an illegal memory access was encountered"; break;
  default: *text = NULL; return INVALID_VALUE;
  }
  return SUCCESS;
}

status cuGetErrorName(status error, const char **name) {
  switch (error) {
  case 1: *name = "CUDA_ERROR_INVALID_VALUE"; break;
  case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
  case 200: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
  case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
  default: *name = NULL; return INVALID_VALUE;
  }
  return SUCCESS;
}

status cuDeviceGetCount(int *count) { *count = DEVICES; return asked("cuDeviceGetCount"); }
status cuDeviceGet(int *device, int ordinal) { *device = ordinal; return SUCCESS; }

static int alike;

// Both devices are of one kind.
void simulator_alike(void) { alike = 1; }

static int kind_of(int device) { return alike ? 0 : device; }

status cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, (size_t)size, "Simulated %d", kind_of(device));
  return SUCCESS;
}

status cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
  case 1: *value = 1024; break;          // threads of a block
  case 10: *value = 32; break;           // threads of a warp
  case 13: *value = 1980000; break;      // the clock rate in kHz
  case 16: *value = 132; break;          // multiprocessors
  case 38: *value = 1 << 20; break;      // bytes of the second-level cache
  case 39: *value = 2048; break;         // threads of a multiprocessor
  case 75: *value = 9 - kind_of(device); break;  // the major number of the compute capability
  case 115: *value = pools; break;       // memory pools are supported
  default: *value = 0;
  }
  return SUCCESS;
}

// Whether devices have memory pools.
void simulator_pools(int have) { pools = have; }

status cuDeviceTotalMem(size_t *bytes, int device) {
  (void)device;
  *bytes = (size_t)1 << 26;
  return SUCCESS;
}

status cuDevicePrimaryCtxRetain(context **found, int device) {
  CALL("cuDevicePrimaryCtxRetain %d", device);
  *found = &primary[device];
  return SUCCESS;
}

status cuCtxPushCurrent(context *pushed) {
  if (pushed->device == GONE) return NO_CONTEXT;
  if (depth == CONTEXTS) return INVALID_VALUE;
  stack[depth++] = pushed;
  return SUCCESS;
}

status cuCtxPopCurrent(context **popped) {
  if (!depth) return NO_CONTEXT;
  *popped = stack[--depth];
  return SUCCESS;
}

status cuCtxGetCurrent(context **found) {
  *found = current();
  return SUCCESS;
}

// Tools that watch a process report what fails, also where the caller expects it.
status cuCtxGetDevice(int *device) {
  if (!current()) {
    say("cuCtxGetDevice fails");
    return NO_CONTEXT;
  }
  *device = current()->device;
  return SUCCESS;
}

status cuCtxSynchronize(void) {
  if (!current()) return NO_CONTEXT;
  CALL("cuCtxSynchronize");
  if (captured) return forbidden(CAPTURE_UNSUPPORTED);
  simulator_hold(0);
  return SUCCESS;
}

status cuStreamSynchronize(uintptr_t stream) {
  if (!current()) return NO_CONTEXT;
  CALL("cuStreamSynchronize %zx", stream);
  if (captured && stream == captured) return forbidden(CAPTURE_UNSUPPORTED);
  USE(stream);
  simulator_hold(0);
  return SUCCESS;
}

status cuPointerGetAttribute(void *value, int attribute, uintptr_t address) {
  if (attribute != 9) return INVALID_VALUE;
  for (int n = 0; n < block_count; n += 1) {
    if (blocks[n].begin && blocks[n].begin <= address && address <= blocks[n].end) {
      *(int *)value = blocks[n].device;
      return SUCCESS;
    }
  }
  return INVALID_VALUE;
}

status cuLibraryLoadData(library **loaded, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  (void)a; (void)b; (void)c; (void)d; (void)e; (void)f;
  CALL("cuLibraryLoadData");
  if (captured && capture_mode != RELAXED) return forbidden(CAPTURE_UNSUPPORTED);
  *loaded = malloc(sizeof **loaded);
  (*loaded)->code = code;
  return SUCCESS;
}

status cuLibraryUnload(library *loaded) {
  say("cuLibraryUnload");
  if (captured && capture_mode != RELAXED) return forbidden(CAPTURE_UNSUPPORTED);
  free(loaded);
  return SUCCESS;
}

status cuLibraryGetKernel(kernel **found, library *from, const char *name) {
  *found = malloc(sizeof **found);
  (*found)->library = from;
  snprintf((*found)->name, sizeof (*found)->name, "%s", name);
  return SUCCESS;
}

status cuKernelSetAttribute(int attribute, int value, kernel *changed, int device) {
  CALL("cuKernelSetAttribute %s %d=%d on %d", changed->name, attribute, value, device);
  return SUCCESS;
}

enum { NODES = 256, ARGUMENTS = 4096 };

// The bytes of arguments, which are packed, or given one by one.
static status take_arguments(const kernel *launched, void **parameters, void **extra, char *arguments, size_t *bytes) {
  if (!parameters == !extra) return INVALID_VALUE;
  if (parameters) {
    *bytes = gather_arguments(launched->library->code, launched->name, parameters, arguments, ARGUMENTS);
    return SUCCESS;
  }
  if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4]) return INVALID_VALUE;
  *bytes = *(size_t *)extra[3];
  if (*bytes > ARGUMENTS) return INVALID_VALUE;
  memcpy(arguments, extra[1], *bytes);
  return SUCCESS;
}

status cuLaunchKernel(kernel *launched, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, uintptr_t stream, void **parameters, void **extra) {
  char arguments[ARGUMENTS];
  size_t bytes;
  if (!current() || take_arguments(launched, parameters, extra, arguments, &bytes)) return INVALID_VALUE;
  CALL("cuLaunchKernel %s on %d:%zx, grid %u %u %u, block %u %u %u, shared %u", launched->name, current()->device, stream,
       gx, gy, gz, bx, by, bz, shared);
  USE(stream);
  const uint32_t sizes[7] = {gx, gy, gz, bx, by, bz, shared};
  return launch_kernel(launched->library->code, launched->name, sizes, stream, arguments, bytes);
}

// What cuTensorMapEncodeTiled makes of a tensor, which ptx_streams.h reads.
typedef struct {
  uint64_t magic, address;
  uint32_t size, rank;
  uint64_t shape[5], strides[4];
  uint32_t box[5], swizzle;
} tensor_map;

static const int sizes_of_types[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};

status cuTensorMapEncodeTiled(tensor_map *map, int type, uint32_t rank, uintptr_t address, const uint64_t *shape,
                              const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                              int swizzle, int promotion, int fill) {
  CALL("cuTensorMapEncodeTiled %u", rank);
  (void)promotion;
  if (type < 0 || type > 9 || rank < 1 || rank > 5 || address % 16 || (uintptr_t)map % 64 || interleave || fill) return INVALID_VALUE;
  *map = (tensor_map){0x70616d, address, sizes_of_types[type], rank, {0}, {0}, {0}, swizzle};
  for (uint32_t n = 0; n < rank; n += 1) {
    if (!shape[n] || shape[n] > 1ull << 32 || !box[n] || box[n] > 256 || steps[n] != 1) return INVALID_VALUE;
    if (n && (strides[n - 1] % 16 || strides[n - 1] >= 1ull << 40)) return INVALID_VALUE;
    map->shape[n] = shape[n];
    map->box[n] = box[n];
    if (n) map->strides[n - 1] = strides[n - 1];
  }
  return box[0] * map->size * (swizzle == 3) <= 128 ? SUCCESS : INVALID_VALUE;
}

// ---- graphs of kernels, each of which waits for the one before

// CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h.
typedef struct {
  void *function;
  uint32_t sizes[7];
  void **parameters, **extra;
  kernel *launched;
  context *of;
} node_parameters;

typedef struct { kernel *launched; uint32_t sizes[7]; char arguments[ARGUMENTS]; size_t bytes; } graph_node;
typedef struct { int count; graph_node node[NODES]; } graph;
typedef struct { context *of; const graph_node *origin; graph nodes; } executable_graph;

static int live_graphs;

// Graphs, and executable ones, that are there.
int simulator_graphs(void) { return live_graphs; }

static status set_node(graph_node *node, const node_parameters *given) {
  if (given->function || !given->launched || given->of) return INVALID_VALUE;
  node->launched = given->launched;
  memcpy(node->sizes, given->sizes, sizeof node->sizes);
  return take_arguments(given->launched, given->parameters, given->extra, node->arguments, &node->bytes);
}

status cuGraphCreate(graph **made, unsigned flags) {
  CALL("cuGraphCreate %u", flags);
  *made = calloc(1, sizeof **made);
  live_graphs += 1;
  return SUCCESS;
}

status cuGraphAddKernelNode(graph_node **added, graph *to, graph_node *const *before, size_t count, const node_parameters *given) {
  CALL("cuGraphAddKernelNode %s, shared %u", given->launched->name, given->sizes[6]);
  graph_node *last = to->count ? &to->node[to->count - 1] : NULL;
  if (to->count == NODES || count != (last != NULL) || (count && before[0] != last)) return INVALID_VALUE;
  *added = &to->node[to->count++];
  return set_node(*added, given);
}

status cuGraphInstantiateWithFlags(executable_graph **made, const graph *from, unsigned long long flags) {
  if (!current()) return NO_CONTEXT;
  CALL("cuGraphInstantiate %d, flags %llu", from->count, flags);
  *made = malloc(sizeof **made);
  **made = (executable_graph){current(), from->node, *from};
  live_graphs += 1;
  return SUCCESS;
}

// A node is known by its place in the graph that the executable one was made of, which must still be there.
status cuGraphExecKernelNodeSetParams(executable_graph *changed, const graph_node *node, const node_parameters *given) {
  CALL("cuGraphExecKernelNodeSetParams %s", given->launched->name);
  for (int n = 0; n < changed->nodes.count; n += 1) {
    graph_node *own = &changed->nodes.node[n];
    if (node - n != changed->origin) continue;
    return own->launched == given->launched ? set_node(own, given) : INVALID_VALUE;
  }
  return INVALID_VALUE;
}

status cuGraphLaunch(executable_graph *launched, uintptr_t stream) {
  if (!current() || current() != launched->of) return INVALID_VALUE;
  CALL("cuGraphLaunch of %d on %d:%zx", launched->nodes.count, current()->device, stream);
  USE(stream);
  for (int n = 0; n < launched->nodes.count; n += 1) {
    graph_node *own = &launched->nodes.node[n];
    const status found = launch_kernel(own->launched->library->code, own->launched->name, own->sizes, stream, own->arguments, own->bytes);
    if (found) return found;
  }
  return SUCCESS;
}

status cuGraphExecDestroy(executable_graph *destroyed) {
  free(destroyed);
  live_graphs -= 1;
  return SUCCESS;
}

status cuGraphDestroy(graph *destroyed) {
  free(destroyed);
  live_graphs -= 1;
  return SUCCESS;
}

status cuMemcpyDtoDAsync(uintptr_t target, uintptr_t source, size_t size, uintptr_t stream) {
  if (!current()) return NO_CONTEXT;
  CALL("cuMemcpyDtoDAsync %zu on %zx", size, stream);
  USE(stream);
  memcpy((void *)target, (void *)source, size);
  return SUCCESS;
}

// Pools are numbered by their devices, from 1 on.
status cuMemPoolCreate(uintptr_t *made, const int *properties) {
  *made = properties[3] + 1;
  CALL("cuMemPoolCreate on %d", properties[3]);
  if (captured && capture_mode != RELAXED) return forbidden(CAPTURE_UNSUPPORTED);
  return properties[0] == 1 && properties[2] == 1 ? SUCCESS : INVALID_VALUE;
}

status cuMemPoolSetAttribute(uintptr_t pool, int attribute, const uint64_t *value) {
  (void)pool;
  return attribute == 4 && *value ? SUCCESS : INVALID_VALUE;
}

status cuMemAllocFromPoolAsync(uintptr_t *address, size_t size, uintptr_t pool, uintptr_t stream) {
  if (!current()) return NO_CONTEXT;
  if (pool != (uintptr_t)current()->device + 1) return INVALID_VALUE;
  CALL("cuMemAllocFromPoolAsync %zu on %zx", size, stream);
  USE(stream);
  *address = (uintptr_t)reserve(size, current()->device, NULL);
  block_at(*address)->of_graph = captured && stream == captured;
  return SUCCESS;
}

status cuMemFreeAsync(uintptr_t address, uintptr_t stream) {
  if (!current()) return NO_CONTEXT;
  CALL("cuMemFreeAsync on %zx", stream);
  USE(stream);
  // A graph frees what it has allocated; nothing else does.
  const block *freed = block_at(address);
  if (freed && freed->of_graph != (captured && stream == captured)) return forbidden(INVALID_VALUE);
  return give_back(address);
}

status cuMemHostAlloc(void **address, size_t size, unsigned flags) {
  if (!current()) return NO_CONTEXT;
  CALL("cuMemHostAlloc %zu, flags %u, in %s", size, flags,
       is_primary(current()) ? "the primary context" : "another one");
  if (captured && capture_mode != RELAXED) return forbidden(CAPTURE_UNSUPPORTED);
  *address = reserve(size, current()->device, current());
  return SUCCESS;
}

status cuMemFreeHost(void *address) {
  if (captured && capture_mode != RELAXED) return forbidden(CAPTURE_UNSUPPORTED);
  return give_back((uintptr_t)address);
}

status cuMemcpyDtoH(void *host, uintptr_t address, size_t size) {
  if (!current()) return NO_CONTEXT;
  CALL("cuMemcpyDtoH %zu", size);
  memcpy(host, (void *)address, size);
  return SUCCESS;
}

status cuMemcpyHtoD(uintptr_t address, const void *host, size_t size) {
  if (!current()) return NO_CONTEXT;
  CALL("cuMemcpyHtoD %zu", size);
  memcpy((void *)address, host, size);
  return SUCCESS;
}

status cuMemsetD8Async(uintptr_t address, unsigned char value, size_t size, uintptr_t stream) {
  if (!current()) return NO_CONTEXT;
  CALL("cuMemsetD8Async %zu on %zx", size, stream);
  USE(stream);
  memset((void *)address, value, size);
  return SUCCESS;
}

status cuEventCreate(event **created, unsigned flags) {
  if (!current()) return NO_CONTEXT;
  CALL("cuEventCreate %u", flags);
  *created = calloc(1, sizeof **created);
  live_events += 1;
  return SUCCESS;
}

status cuEventDestroy(event *destroyed) {
  live_events -= 1;
  pthread_mutex_lock(&lock);
  for (int n = 0; n < pending_count; n += 1) {
    if (pending[n] == destroyed) pending[n--] = pending[--pending_count];
  }
  pthread_mutex_unlock(&lock);
  free(destroyed);
  return SUCCESS;
}

status cuEventRecord(event *recorded, uintptr_t stream) {
  CALL("cuEventRecord on %zx", stream);
  USE(stream);
  pthread_mutex_lock(&lock);
  recorded->pending = held;
  if (held) pending[pending_count++] = recorded;
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

status cuEventQuery(const event *asked_for) {
  if (captured && capture_mode != RELAXED) return forbidden(CAPTURE_UNSUPPORTED);
  status wanted = asked("cuEventQuery");
  if (wanted) return wanted;
  return asked_for->pending ? NOT_READY : SUCCESS;
}

status cuStreamIsCapturing(uintptr_t stream, int *state) {
  *state = captured && stream == captured;
  return captured && capture_blocks && is_default(stream) ? CAPTURE_IMPLICIT : SUCCESS;
}

status cuThreadExchangeStreamCaptureMode(int *mode) {
  const int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return SUCCESS;
}

status cuEventElapsedTime(float *milliseconds, event *first, event *last) {
  (void)first; (void)last;
  *milliseconds = 2.5f;
  return SUCCESS;
}

status cuStreamWaitEvent(uintptr_t stream, event *awaited, unsigned flags) {
  (void)awaited; (void)flags;
  CALL("cuStreamWaitEvent on %zx", stream);
  USE(stream);
  return SUCCESS;
}

// NVRTC asks for undocumented tables, and does without.
status cuGetExportTable(const void **table, const void *name) {
  (void)name;
  *table = NULL;
  return NOT_FOUND;
}

// What PyCUDA calls beside the above; it is linked against the names that headers make of these.

status cuDeviceComputeCapability(int *major, int *minor, int device) {
  *major = 9 - device;
  *minor = 0;
  return SUCCESS;
}

status cuDevicePrimaryCtxRelease_v2(int device) {
  say("cuDevicePrimaryCtxRelease %d", device);
  return SUCCESS;
}

// Of a context that is current and not a primary one: it leaves the stack, and its memory goes with it.
status cuCtxDetach(context *detached) {
  say("cuCtxDetach of %d", detached->device);
  if (current() != detached || is_primary(detached)) return NO_CONTEXT;
  depth -= 1;
  for (int n = 0; n < block_count; n += 1) {
    if (blocks[n].begin && blocks[n].owner == detached) give_back(blocks[n].begin);
  }
  detached->device = GONE;
  return SUCCESS;
}

status cuCtxGetApiVersion(const context *asked_for, unsigned *version) {
  *version = 3020;
  return asked_for->device == GONE ? NO_CONTEXT : SUCCESS;
}

status cuCtxCreate_v4(context **made, void *parameters, unsigned flags, int device) {
  (void)parameters; (void)flags;
  CALL("cuCtxCreate on %d", device);
  *made = malloc(sizeof **made);
  **made = (context){device};
  return cuCtxPushCurrent(*made);
}

status cuMemAlloc_v2(uintptr_t *address, size_t size) {
  if (!current()) return NO_CONTEXT;
  CALL("cuMemAlloc %zu", size);
  *address = (uintptr_t)reserve(size, current()->device, current());
  return SUCCESS;
}

status cuMemFree_v2(uintptr_t address) {
  if (!current()) return NO_CONTEXT;
  say("cuMemFree");
  return give_back(address);
}

status cuStreamCreate(uintptr_t *created, unsigned flags) {
  static uintptr_t last = 0xA000;
  if (!current()) return NO_CONTEXT;
  CALL("cuStreamCreate %u", flags);
  *created = last += 16;
  return SUCCESS;
}

status cuStreamDestroy_v2(uintptr_t stream) {
  say("cuStreamDestroy %zx", stream);
  return SUCCESS;
}

#define ALIAS(name, of) __typeof__(of) name __attribute__((alias(#of)))
ALIAS(cuCtxPushCurrent_v2, cuCtxPushCurrent);
ALIAS(cuCtxPopCurrent_v2, cuCtxPopCurrent);
ALIAS(cuMemcpyDtoH_v2, cuMemcpyDtoH);
ALIAS(cuMemcpyHtoD_v2, cuMemcpyHtoD);
ALIAS(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync);
ALIAS(cuDeviceTotalMem_v2, cuDeviceTotalMem);
ALIAS(cuEventDestroy_v2, cuEventDestroy);
ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime);

#define ENTRY(name) {#name, (void *)(name)}
static const struct { const char *name; void *function; } entries[] = {
    ENTRY(cuInit), ENTRY(cuDriverGetVersion), ENTRY(cuGetErrorString), ENTRY(cuDeviceGetCount), ENTRY(cuDeviceGet),
    ENTRY(cuDeviceGetName), ENTRY(cuDeviceGetAttribute), ENTRY(cuDeviceTotalMem), ENTRY(cuDevicePrimaryCtxRetain),
    ENTRY(cuCtxPushCurrent),
    ENTRY(cuCtxPopCurrent), ENTRY(cuCtxGetCurrent), ENTRY(cuCtxGetDevice), ENTRY(cuCtxSynchronize),
    ENTRY(cuStreamSynchronize),
    ENTRY(cuPointerGetAttribute), ENTRY(cuLibraryLoadData), ENTRY(cuLibraryUnload), ENTRY(cuLibraryGetKernel),
    ENTRY(cuKernelSetAttribute), ENTRY(cuLaunchKernel), ENTRY(cuMemPoolCreate), ENTRY(cuMemPoolSetAttribute),
    ENTRY(cuMemAllocFromPoolAsync), ENTRY(cuMemFreeAsync),
    ENTRY(cuMemHostAlloc), ENTRY(cuMemFreeHost), ENTRY(cuMemcpyDtoH), ENTRY(cuMemcpyHtoD), ENTRY(cuMemsetD8Async),
    ENTRY(cuMemcpyDtoDAsync), ENTRY(cuGraphCreate), ENTRY(cuGraphAddKernelNode), ENTRY(cuGraphInstantiateWithFlags),
    ENTRY(cuGraphExecKernelNodeSetParams), ENTRY(cuGraphLaunch), ENTRY(cuGraphExecDestroy), ENTRY(cuGraphDestroy),
    ENTRY(cuEventCreate), ENTRY(cuEventDestroy), ENTRY(cuEventRecord), ENTRY(cuEventQuery), ENTRY(cuEventElapsedTime),
    ENTRY(cuStreamWaitEvent), ENTRY(cuStreamIsCapturing), ENTRY(cuThreadExchangeStreamCaptureMode),
};

status cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found) {
  (void)version; (void)flags;
  *function = NULL;
  for (size_t n = 0; n < sizeof entries / sizeof *entries; n += 1) {
    if (strcmp(entries[n].name, name) == 0) *function = entries[n].function;
  }
  if (found) *found = *function ? 0 : 1;
  return *function ? SUCCESS : NOT_FOUND;
}
