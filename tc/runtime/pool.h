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

struct tc_runtime;

// Runs the iterations begin <= i < end.  No other thread uses `scratch` meanwhile.
typedef void tc_body(const void *context, char *scratch, int64_t begin, int64_t end);

// What a kernel may use.  `shared` and `scratch` are as long as it says; they hold anything, and are aligned to 64 bytes.
typedef struct tc_runtime {
  // Splits lower <= i < upper into contiguous pieces that at most `threads` threads run, and returns when all have run.
  // Inside of a body it runs all iterations itself; a kernel that does so must not use scratch memory.
  void (*parallel_for)(const struct tc_runtime *runtime, tc_body *body, const void *context, int64_t lower,
                       int64_t upper);
  void *pool;
  int64_t threads;        // the most threads that this call may use
  int32_t *fault;         // 0 until an iteration stores something else
  char *shared;           // for temporaries
  char *scratch;          // of the thread that calls the kernel
  int64_t scratch_bytes;  // from one thread's scratch memory to the next one's
} tc_runtime;

// What every compiled kernel exports under the name tc_kernel.
typedef void tc_entry(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime);

// A launch as one block of 64-bit words: the buffers' addresses, then the scalars.
typedef struct tc_launch {
  tc_entry *kernel;
  int64_t threads;
  int64_t shared_bytes;   // of memory for temporaries, and
  int64_t scratch_bytes;  // of scratch memory for every thread: multiples of 64
  int64_t buffers;
  uint64_t words[];
} tc_launch;

enum { TC_NO_MEMORY = -1 };

// Runs the kernel in the default floating-point environment and returns its fault, or TC_NO_MEMORY.
int32_t tc_run(const tc_launch *launch);

// What a kernel is given: the address so many bytes behind the beginning of a memory, or `offset` itself where `memory` is
// negative.
typedef struct tc_word {
  int64_t memory, offset;
} tc_word;

// A kernel of a program.
typedef struct tc_step {
  tc_entry *kernel;
  int64_t most_threads;  // 0: as many as allowed
  int64_t shared_bytes;
  int64_t scratch_bytes;
  int64_t buffers;  // how many of the words are addresses of buffers, which come first
  int64_t count;    // of the words
  tc_word words[];
} tc_step;

// Kernels that run one after the other; so many steps follow.
typedef struct tc_program {
  int64_t steps;
  int64_t arena;        // the number of the memory in which they pass values to each other
  int64_t arena_bytes;  // which each run has of its own, aligned to 64 bytes; 0 if the caller brings it
} tc_program;

// Runs the kernels in order until one has a fault, or finds no memory.  Returns 0, or that in the lower half and the
// number of the step in the upper one, one past the last where there is no arena.  `memories` has room for its address.
int64_t tc_run_program(const tc_program *program, int64_t threads, uint64_t *memories);

// A kernel that copies: its buffers are the target and the source, its only scalar is the number of bytes.
tc_entry tc_copy;

#endif
