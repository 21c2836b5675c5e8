// What headers bring elsewhere, and what CUDA has a better way for.

//= TC_INLINED
#define TC_INLINED static inline
//= int8_t
typedef signed char int8_t;
//= int16_t
typedef short int16_t;
//= int32_t
typedef int int32_t;
//= int64_t
typedef long long int64_t;
//= uint8_t
typedef unsigned char uint8_t;
//= uint16_t
typedef unsigned short uint16_t;
//= uint32_t
typedef unsigned int uint32_t;
//= uint64_t
typedef unsigned long long uint64_t;
//= uintptr_t
typedef unsigned long long uintptr_t;
//= INT8_MIN
#define INT8_MIN (-128)
//= INT8_MAX
#define INT8_MAX 127
//= UINT8_MAX
#define UINT8_MAX 255
//= INT16_MIN
#define INT16_MIN (-32768)
//= INT16_MAX
#define INT16_MAX 32767
//= UINT16_MAX
#define UINT16_MAX 65535
//= INT32_MIN
#define INT32_MIN (-2147483647 - 1)
//= INT32_MAX
#define INT32_MAX 2147483647
//= UINT32_MAX
#define UINT32_MAX 4294967295u
//= INT64_MIN
#define INT64_MIN (-9223372036854775807ll - 1)
//= INT64_MAX
#define INT64_MAX 9223372036854775807ll
//= UINT64_MAX
#define UINT64_MAX 18446744073709551615ull
//= INFINITY
#define INFINITY __int_as_float(0x7f800000)
//= NAN
#define NAN __int_as_float(0x7fffffff)

//= j0f
// That of float32 is 2.2e-6 off where x is great.
#define j0f(x) ((float)j0((double)(x)))
//= j1f
// That of float32 is 2.2e-6 off where x is great.
#define j1f(x) ((float)j1((double)(x)))
//= y0f
// That of float32 is 2.2e-6 off where x is great.
#define y0f(x) ((float)y0((double)(x)))
//= y1f
// That of float32 is 2.2e-6 off where x is great.
#define y1f(x) ((float)y1((double)(x)))

//= tc_min_float32
// NaN where either is, which fminf is not.
static inline float tc_min_float32(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float found;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(a), "f"(b));
  return found;
#else
  return b != b || b < a ? b : a;
#endif
}

//= tc_max_float32
// NaN where either is, which fmaxf is not.
static inline float tc_max_float32(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float found;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(a), "f"(b));
  return found;
#else
  return b != b || b > a ? b : a;
#endif
}

//= tc_float16
typedef unsigned short tc_float16;

//= tc_float32_from_float16
static inline float tc_float32_from_float16(tc_float16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x));
  return wide;
}

//= tc_float16_from_float32
static inline tc_float16 tc_float16_from_float32(float x) {
  tc_float16 narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
  return narrow;
}

//= tc_bfloat16
typedef unsigned short tc_bfloat16;

//= tc_float32_from_bfloat16
static inline float tc_float32_from_bfloat16(tc_bfloat16 x) { return __uint_as_float((unsigned)x << 16); }

//= tc_bfloat16_from_float32
static inline tc_bfloat16 tc_bfloat16_from_float32(float x) {
#if __CUDA_ARCH__ >= 800
  tc_bfloat16 narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
  return narrow;
#else
  const unsigned bits = __float_as_uint(x);
  return x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
#endif
}

//= tc_copy_ahead
// A copy to shared memory that ends by itself, where the machine has such.
template <int bytes> static __forceinline__ void tc_copy_ahead(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  if constexpr (bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from));
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(bytes));
#else
  if constexpr (bytes == 16) *(uint4 *)to = *(const uint4 *)from;
  else if constexpr (bytes == 8) *(uint2 *)to = *(const uint2 *)from;
  else *(unsigned *)to = *(const unsigned *)from;
#endif
}

//= tc_copy_piece
// Copies as many bytes as one instruction moves; where tensors are not aligned to them, element by element.
template <bool aligned, bool ahead, int bytes, typename element>
static __forceinline__ void tc_copy_piece(element *to, const element *from) {
  if constexpr (aligned) {
    if constexpr (ahead) tc_copy_ahead<bytes>(to, from);
    else if constexpr (bytes == 16) *(uint4 *)to = *(const uint4 *)from;
    else if constexpr (bytes == 8) *(uint2 *)to = *(const uint2 *)from;
    else *(unsigned *)to = *(const unsigned *)from;
  } else {
    for (int n = 0; n < bytes / (int)sizeof(element); n += 1) {
      if constexpr (ahead && sizeof(element) >= 4) tc_copy_ahead<sizeof(element)>(to + n, from + n);
      else to[n] = from[n];
    }
  }
}

//= tc_store_piece
// Stores as many bytes as one instruction moves, of an array of the thread; element by element as above.
template <bool aligned, int bytes, typename element>
static __forceinline__ void tc_store_piece(element *to, const element *from) {
  struct __align__(bytes) { element own[bytes / sizeof(element)]; } piece;
  for (int n = 0; n < bytes / (int)sizeof(element); n += 1) piece.own[n] = from[n];
  if constexpr (aligned) *(decltype(piece) *)to = piece;
  else for (int n = 0; n < bytes / (int)sizeof(element); n += 1) to[n] = piece.own[n];
}

//= tc_arrived
// Waits for the copies ahead, but for those of the last so many groups; a group ends here.  What has arrived is seen by
// all threads after the next barrier.
template <int pending> static __forceinline__ void tc_arrived() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

//= tc_load_rows
// Matrix instructions of warps, which all 32 lanes run together (PTX ISA: ldmatrix, mma).  Each lane names one row of
// eight elements in shared memory, and gets two elements of every matrix: of a row, or of a column.
template <int count> static __forceinline__ void tc_load_rows(uint32_t *to, const void *from) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(from);
  if constexpr (count == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(place));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(place));
}

//= tc_load_columns
template <int count> static __forceinline__ void tc_load_columns(uint32_t *to, const void *from) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(from);
  if constexpr (count == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(place));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1]) : "r"(place));
}

//= tc_multiply_float16
static __forceinline__ void tc_multiply_float16(float *c0, float *c1, float *c2, float *c3, const uint32_t *left,
                                               const uint32_t *right) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(*c0), "+f"(*c1), "+f"(*c2), "+f"(*c3)
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

//= tc_multiply_bfloat16
static __forceinline__ void tc_multiply_bfloat16(float *c0, float *c1, float *c2, float *c3, const uint32_t *left,
                                               const uint32_t *right) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(*c0), "+f"(*c1), "+f"(*c2), "+f"(*c3)
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

//= tc_bits_of_float32
static __forceinline__ uint32_t tc_bits_of_float32(float x) { return __float_as_uint(x); }

//= tc_tf32
// The nearest number of 11 significant bits (PTX ISA: cvt.rna.tf32.f32).
static __forceinline__ uint32_t tc_tf32(uint32_t x) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(x)));
  return rounded;
}

//= tc_multiply_words
static __forceinline__ void tc_multiply_words(float *c0, float *c1, float *c2, float *c3, const uint32_t *left,
                                              const uint32_t *right) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(*c0), "+f"(*c1), "+f"(*c2), "+f"(*c3)
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

//= tc_multiply_tf32 < tc_tf32 tc_multiply_words
static __forceinline__ void tc_multiply_tf32(float *c0, float *c1, float *c2, float *c3, const uint32_t *left,
                                             const uint32_t *right) {
  uint32_t a[4], b[2];
  for (int n = 0; n < 4; n += 1) a[n] = tc_tf32(left[n]);
  for (int n = 0; n < 2; n += 1) b[n] = tc_tf32(right[n]);
  tc_multiply_words(c0, c1, c2, c3, a, b);
}

//= tc_multiply_3xtf32 < tc_tf32 tc_multiply_words
// Each factor is the sum of two numbers of 11 bits; the product of both rests is left out, and small ones come first.
static __forceinline__ void tc_multiply_3xtf32(float *c0, float *c1, float *c2, float *c3, const uint32_t *left,
                                               const uint32_t *right) {
  uint32_t a[4], b[2], rest_of_a[4], rest_of_b[2];
  for (int n = 0; n < 4; n += 1) {
    a[n] = tc_tf32(left[n]);
    rest_of_a[n] = tc_tf32(__float_as_uint(__uint_as_float(left[n]) - __uint_as_float(a[n])));
  }
  for (int n = 0; n < 2; n += 1) {
    b[n] = tc_tf32(right[n]);
    rest_of_b[n] = tc_tf32(__float_as_uint(__uint_as_float(right[n]) - __uint_as_float(b[n])));
  }
  tc_multiply_words(c0, c1, c2, c3, rest_of_a, b);
  tc_multiply_words(c0, c1, c2, c3, a, rest_of_b);
  tc_multiply_words(c0, c1, c2, c3, a, b);
}

//= tc_multiply_s8_s8
static __forceinline__ void tc_multiply_s8_s8(int32_t *c0, int32_t *c1, int32_t *c2, int32_t *c3, const uint32_t *left,
                                             const uint32_t *right) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+r"(*c0), "+r"(*c1), "+r"(*c2), "+r"(*c3)
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

//= tc_multiply_s8_u8
static __forceinline__ void tc_multiply_s8_u8(int32_t *c0, int32_t *c1, int32_t *c2, int32_t *c3, const uint32_t *left,
                                             const uint32_t *right) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+r"(*c0), "+r"(*c1), "+r"(*c2), "+r"(*c3)
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

//= tc_multiply_u8_s8
static __forceinline__ void tc_multiply_u8_s8(int32_t *c0, int32_t *c1, int32_t *c2, int32_t *c3, const uint32_t *left,
                                             const uint32_t *right) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+r"(*c0), "+r"(*c1), "+r"(*c2), "+r"(*c3)
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

//= tc_multiply_u8_u8
static __forceinline__ void tc_multiply_u8_u8(int32_t *c0, int32_t *c1, int32_t *c2, int32_t *c3, const uint32_t *left,
                                             const uint32_t *right) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+r"(*c0), "+r"(*c1), "+r"(*c2), "+r"(*c3)
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

//= tc_swizzled
// Where an element of a matrix lies: pieces of 16 bytes change places in rows of 128, piece p of row r with p ^ r % 8.
static __forceinline__ int tc_swizzled(unsigned offset, unsigned size) {
  return offset ^ offset / (128 / size) % 8 * (16 / size);
}

//= tc_swizzled_panels
// The same of matrices with so many rows of more than 128 bytes, which are cut into panels: one lies behind the other.
static __forceinline__ int tc_swizzled_panels(unsigned offset, unsigned size, unsigned row, unsigned rows) {
  const unsigned width = 128 / size, column = offset % row;
  return tc_swizzled(column / width * width * rows + offset / row * width + column % width, size);
}

//= tc_fence
// What this thread has written to shared memory is seen by matrix instructions that read it by themselves, behind the
// next barrier by those of all threads (PTX ISA: fence.proxy.async).
static __forceinline__ void tc_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

//= tc_begin_products
// Behind this, sums belong to the matrix instructions of four warps (PTX ISA: wgmma.fence).
static __forceinline__ void tc_begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

//= tc_commit_products
static __forceinline__ void tc_commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

//= tc_end_products
// Waits until they have ended.
static __forceinline__ void tc_end_products() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

//= tc_drain
// Waits until those of all groups but the last so many have ended.
template <int pending> static __forceinline__ void tc_drain() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

//= tc_tensor_map
// How a tensor lies in memory, and what boxes of it are copied (CUDA Driver API: cuTensorMapEncodeTiled).
struct __align__(64) tc_tensor_map { char bytes[128]; };

//= tc_place
static __forceinline__ unsigned tc_place(const void *shared) { return (unsigned)__cvta_generic_to_shared(shared); }

//= tc_begin_channel < tc_place
// A channel at which so many threads arrive before a phase of it ends (PTX ISA: mbarrier).
static __forceinline__ void tc_begin_channel(uint64_t *channel, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(tc_place(channel)), "r"(count) : "memory");
}

//= tc_await < tc_place
// Waits until a phase has ended whose number is even, or odd.
static __forceinline__ void tc_await(uint64_t *channel, unsigned parity) {
  unsigned ended;
  do {
    asm volatile("{\n.reg .pred ended;\nmbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, ended;\n}" : "=r"(ended) : "r"(tc_place(channel)), "r"(parity) : "memory");
  } while (!ended);
}

//= tc_expect < tc_place
// Arrives, and so many bytes are to follow.
static __forceinline__ void tc_expect(uint64_t *channel, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(tc_place(channel)), "r"(bytes) : "memory");
}

//= tc_leave < tc_place
// One lane of a warp arrives.
static __forceinline__ void tc_leave(uint64_t *channel) {
  if ((threadIdx.x | threadIdx.y) == 0)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(tc_place(channel)) : "memory");
}

//= tc_give_registers
// Threads of this group of four warps have so many registers from now on, fewer than before.
template <int count> static __forceinline__ void tc_give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

//= tc_take_registers
// They have so many, more than before.
template <int count> static __forceinline__ void tc_take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

//= tc_matrix
// A matrix in swizzled shared memory, with so many bytes from eight rows to the next ones, and from panel to panel (PTX
// ISA: Matrix Descriptor Format).
static __forceinline__ uint64_t tc_matrix(const void *first, unsigned stride, unsigned leading) {
  const uint64_t place = __cvta_generic_to_shared(first);
  return (place & 0x3ffff) >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | 1ull << 62;
}
