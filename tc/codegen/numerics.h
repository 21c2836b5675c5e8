// Helpers of generated kernels.  Each section names what it defines; a source takes the sections that it mentions.

//= tc_min_* tc_max_*
// Floating-point minimum and maximum propagate NaN, which fmin and fmax do not.
#define TC_MINIMUM_AND_MAXIMUM(name, type)                                                  \
  static inline type tc_min_##name(type a, type b) { return a < b || a != a ? a : b; }      \
  static inline type tc_max_##name(type a, type b) { return a > b || a != a ? a : b; }
TC_MINIMUM_AND_MAXIMUM(bool, bool)
TC_MINIMUM_AND_MAXIMUM(int8, int8_t)
TC_MINIMUM_AND_MAXIMUM(int16, int16_t)
TC_MINIMUM_AND_MAXIMUM(int32, int32_t)
TC_MINIMUM_AND_MAXIMUM(int64, int64_t)
TC_MINIMUM_AND_MAXIMUM(uint8, uint8_t)
TC_MINIMUM_AND_MAXIMUM(uint16, uint16_t)
TC_MINIMUM_AND_MAXIMUM(uint32, uint32_t)
TC_MINIMUM_AND_MAXIMUM(uint64, uint64_t)
TC_MINIMUM_AND_MAXIMUM(float32, float)
TC_MINIMUM_AND_MAXIMUM(float64, double)
// The built-in min and max of OpenMP would lose a NaN when lanes are combined.
#pragma omp declare reduction(tc_min_float32 : float : omp_out = tc_min_float32(omp_out, omp_in)) initializer(omp_priv = INFINITY)
#pragma omp declare reduction(tc_max_float32 : float : omp_out = tc_max_float32(omp_out, omp_in)) initializer(omp_priv = -INFINITY)
#pragma omp declare reduction(tc_min_float64 : double : omp_out = tc_min_float64(omp_out, omp_in)) initializer(omp_priv = INFINITY)
#pragma omp declare reduction(tc_max_float64 : double : omp_out = tc_max_float64(omp_out, omp_in)) initializer(omp_priv = -INFINITY)

//= tc_floor_divide_int64
// Rounds to minus infinity; the divisor is positive.
static inline int64_t tc_floor_divide_int64(int64_t a, int64_t b) { return a / b - (a % b < 0); }

//= tc_divide_* tc_remainder_*
// Truncating division: by zero it gives zero, and the least value over -1 wraps.
#define TC_DIVISION(name, type)                                                                               \
  static inline type tc_divide_##name(type a, type b) {                                                       \
    return b == 0 ? (type)0 : (type)-1 < 0 && b == (type)-1 ? (type)(0 - a) : (type)(a / b);                   \
  }                                                                                                           \
  static inline type tc_remainder_##name(type a, type b) {                                                    \
    return b == 0 || ((type)-1 < 0 && b == (type)-1) ? (type)0 : (type)(a % b);                                \
  }
TC_DIVISION(bool, bool)
TC_DIVISION(int8, int8_t)
TC_DIVISION(int16, int16_t)
TC_DIVISION(int32, int32_t)
TC_DIVISION(int64, int64_t)
TC_DIVISION(uint8, uint8_t)
TC_DIVISION(uint16, uint16_t)
TC_DIVISION(uint32, uint32_t)
TC_DIVISION(uint64, uint64_t)

//= tc_abs_*
#define TC_ABSOLUTE(name, type) \
  static inline type tc_abs_##name(type a) { return a < 0 ? (type)(0 - a) : a; }
TC_ABSOLUTE(bool, bool)
TC_ABSOLUTE(int8, int8_t)
TC_ABSOLUTE(int16, int16_t)
TC_ABSOLUTE(int32, int32_t)
TC_ABSOLUTE(int64, int64_t)
TC_ABSOLUTE(uint8, uint8_t)
TC_ABSOLUTE(uint16, uint16_t)
TC_ABSOLUTE(uint32, uint32_t)
TC_ABSOLUTE(uint64, uint64_t)

//= tc_*int8_from_float* tc_*int16_from_float* tc_*int32_from_float* tc_*int64_from_float*
// Truncates; beyond the type's limits it saturates, and NaN gives 0.  END is the power of two after the greatest value.
#define TC_TO_INTEGER(name, source, real, least, greatest, end)                         \
  static inline name##_t tc_##name##_from_##source(real x) {                            \
    return x >= end ? greatest : x >= least ? (name##_t)x : x != x ? 0 : least;         \
  }
#define TC_TO_INTEGERS(source, real)                                                    \
  TC_TO_INTEGER(int8, source, real, INT8_MIN, INT8_MAX, 0x1p7f)                         \
  TC_TO_INTEGER(int16, source, real, INT16_MIN, INT16_MAX, 0x1p15f)                     \
  TC_TO_INTEGER(int32, source, real, INT32_MIN, INT32_MAX, 0x1p31f)                     \
  TC_TO_INTEGER(int64, source, real, INT64_MIN, INT64_MAX, 0x1p63f)                     \
  TC_TO_INTEGER(uint8, source, real, 0, UINT8_MAX, 0x1p8f)                              \
  TC_TO_INTEGER(uint16, source, real, 0, UINT16_MAX, 0x1p16f)                           \
  TC_TO_INTEGER(uint32, source, real, 0, UINT32_MAX, 0x1p32f)                           \
  TC_TO_INTEGER(uint64, source, real, 0, UINT64_MAX, 0x1p64f)
TC_TO_INTEGERS(float32, float)
TC_TO_INTEGERS(float64, double)

//= tc_checked_index
// An index inside the dimension; if it is not, the fault is reported and the read goes to the first element.
static inline int64_t tc_checked_index(int64_t index, int64_t extent, int32_t *fault, int32_t number) {
  if (__builtin_expect((uint64_t)index >= (uint64_t)extent, 0)) {
    __atomic_store_n(fault, number, __ATOMIC_RELAXED);
    return 0;
  }
  return index;
}

//= tc_round_to_odd
// Nearest-odd rounding to float keeps what a second rounding to a half must know of the double.
static inline float tc_round_to_odd(double x) {
  union { float f; uint32_t u; } r = {.f = (float)x};
  if (r.f - x != 0 && !(r.u & 1)) r.u += (x > r.f) == (r.f >= 0) ? 1 : -1;
  return r.f;
}

//= tc_float16 tc_float32_from_float16 tc_float16_from_*
#ifdef __FLT16_MAX__
typedef _Float16 tc_float16;
static inline float tc_float32_from_float16(tc_float16 x) { return x; }
static inline tc_float16 tc_float16_from_float32(float x) { return x; }
static inline tc_float16 tc_float16_from_float64(double x) { return x; }
#else
typedef uint16_t tc_float16;
#endif

//= tc_bfloat16 tc_float32_from_bfloat16 tc_bfloat16_from_*
typedef uint16_t tc_bfloat16;
static inline float tc_float32_from_bfloat16(tc_bfloat16 x) {
  union { uint32_t u; float f; } r = {.u = (uint32_t)x << 16};
  return r.f;
}
static inline tc_bfloat16 tc_bfloat16_from_float32(float x) {
  union { float f; uint32_t u; } r = {.f = x};
  return x != x ? r.u >> 16 | 0x40 : (r.u + 0x7fff + (r.u >> 16 & 1)) >> 16;
}
static inline tc_bfloat16 tc_bfloat16_from_float64(double x) { return tc_bfloat16_from_float32(tc_round_to_odd(x)); }
