// What the kernels of this folder are, and the way to call them.

#ifndef TC_CALL_H
#define TC_CALL_H

#include "pool.h"

#include <stddef.h>
#include <stdint.h>

// An array that a kernel takes.  A kernel is given the address of the element whose subscripts are 0, except that the
// kernels of OpenCL are given the lowest one.  Elements of float16 and bfloat16 are their 16 bits, those of bool bytes.
// Where extents stay open, shape, strides and bytes are those of the greatest sizes; arrays of other sizes are
// C-contiguous, too, unless the header says their strides.
typedef struct tc_operand {
  const char *name;
  const char *type;
  int64_t dimensions;
  const int64_t *shape;
  const int64_t *strides;  // in elements
  int64_t bytes;           // from the lowest element to the end of the highest one
  int64_t before;          // of them, those below the element whose subscripts are 0
  int32_t written;         // 0: it is only read
  int32_t read;            // 0: whatever it holds is overwritten
} tc_operand;

// A scalar that a kernel takes; `tc_scalar` in pool.h says which member holds a type.  Sizes that stay open come last,
// as int64: A.0 is the first extent of A and A.1 the second one, at least 1, and at most the shape in the table.
typedef struct tc_parameter {
  const char *name;
  const char *type;
} tc_parameter;

// What a kernel of a GPU is given: the address of an operand or a temporary, a scalar (a bool as a byte, float16 and
// bfloat16 as a float), the address of an int32_t that is 0 and says afterwards what went wrong, or a number of its own,
// as an int32_t.  `number`: of the operand, the temporary or the scalar, or that number.
typedef enum tc_place { TC_BUFFER, TC_TEMPORARY, TC_SCALAR, TC_FAULT, TC_STEP } tc_place;
typedef struct tc_argument {
  tc_place place;
  int64_t number;
} tc_argument;

// A launch on a GPU, along x, y and z.  The source itself declares the memory that the threads of a block share; where
// that is more than 48 KiB, a launch on CUDA asks for it (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).
typedef struct tc_grid {
  const char *name;
  int64_t blocks[3];
  int64_t threads[3];
  int64_t shared_bytes;
  int64_t argument_count;
  const tc_argument *arguments;
} tc_grid;

typedef struct tc_exported {
  const char *name;
  const char *definition;
  const char *target;
  const char *file;   // of its source
  const char *flags;  // options of the compiler that the source needs
  tc_entry *entry;    // NULL where the kernel runs on a GPU: then its grids are launched, in this order
  int64_t operand_count;
  const tc_operand *operands;
  int64_t scalar_count;
  const tc_parameter *scalars;
  int64_t most_threads;   // of a call; 0: as many as there are
  int64_t shared_bytes;   // memory that a call on a processor needs,
  int64_t scratch_bytes;  // and for every thread: multiples of 64, aligned to 64; tc_call brings them
  int64_t temporary_count;
  const int64_t *temporaries;  // memory that a call on a GPU needs, in bytes
  int64_t grid_count;
  const tc_grid *grids;
  double seconds;  // of a call, where it was measured; 0 elsewhere
  double default_seconds;
} tc_exported;

extern const tc_exported tc_kernels[];
extern const int64_t tc_kernel_count;

// The kernel with this name; NULL if there is none.
const tc_exported *tc_find(const char *name);

enum { TC_NOT_CALLED = -4 };

// Runs a kernel on the processor, on at most `threads` threads, in the default floating-point environment.  Returns 0,
// or the fault that the comment in kernels.h explains, or TC_NO_MEMORY, or TC_NOT_CALLED for a kernel that is NULL or
// has no entry.  Without scalars, `scalars` may be NULL.  Safe from many threads.
int32_t tc_call(const tc_exported *kernel, void *const *buffers, const tc_scalar *scalars, int64_t threads);

#endif
