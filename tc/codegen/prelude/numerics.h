// Helpers of generated kernels.  Each section names what it defines; a source takes the sections that it mentions.

//= tc_first_of_1
// The mask of a word that is of the first so many steps, or not.
static inline uint32_t tc_first_of_1(int32_t count) { return count > 0 ? 0xffffffffu : 0; }

//= tc_first_of_2
// The mask of the halves of a word that are of the first so many steps.
static inline uint32_t tc_first_of_2(int32_t count) { return count > 1 ? 0xffffffffu : count > 0 ? 0xffffu : 0; }

//= tc_first_of_4
// The mask of the bytes of a word that are of the first so many steps.
static inline uint32_t tc_first_of_4(int32_t count) {
  return count > 3 ? 0xffffffffu : count > 0 ? (1u << 8 * count) - 1 : 0;
}

//= TC_INLINED
// Loops that call something do not run in lanes, and GCC leaves calls where it takes a loop for unlikely, as it does that
// of a partial tile.
#if defined(__GNUC__) && !defined(__CUDA_ARCH__)
#define TC_INLINED static inline __attribute__((always_inline))
#else
#define TC_INLINED static inline
#endif

//= tc_byte_word_int32* tc_byte_word_flipped_int32* tc_byte_dot_int32
// Four bytes in a word, the first one lowest; with their highest bits flipped; and the sum of the products of the bytes of
// two words, unsigned ones by signed ones.
static inline int32_t tc_byte_word_int32(int32_t a, int32_t b, int32_t c, int32_t d) {
  return (int32_t)((uint32_t)(uint8_t)a | (uint32_t)(uint8_t)b << 8 | (uint32_t)(uint8_t)c << 16 | (uint32_t)d << 24);
}
static inline int32_t tc_byte_word_flipped_int32(int32_t a, int32_t b, int32_t c, int32_t d) {
  return (int32_t)((uint32_t)tc_byte_word_int32(a, b, c, d) ^ 0x80808080u);
}
static inline int32_t tc_byte_word_int32_at(const void *bytes) {
  int32_t word;
  __builtin_memcpy(&word, bytes, sizeof word);
  return word;
}
static inline int32_t tc_byte_word_flipped_int32_at(const void *bytes) {
  return (int32_t)((uint32_t)tc_byte_word_int32_at(bytes) ^ 0x80808080u);
}
static inline int32_t tc_byte_dot_int32(int32_t a, int32_t b) {
  int32_t sum = 0;
  for (int i = 0; i < 32; i += 8) sum += (int32_t)((uint32_t)a >> i & 255) * (int8_t)((uint32_t)b >> i & 255);
  return sum;
}

//= tc_short_word_int32* tc_short_dot_int32
// Two integers of 16 bits in a word, the first one lowest, and the sum of the products of those of two words, modulo 2^32.
static inline int32_t tc_short_word_int32(int32_t a, int32_t b) {
  return (int32_t)((uint32_t)(uint16_t)a | (uint32_t)b << 16);
}
static inline int32_t tc_short_word_int32_at(const void *shorts) {
  int32_t word;
  __builtin_memcpy(&word, shorts, sizeof word);
  return word;
}
static inline int32_t tc_short_dot_int32(int32_t a, int32_t b) {
  const int32_t low = (int16_t)(uint16_t)a * (int16_t)(uint16_t)b, high = (a >> 16) * (b >> 16);
  return (int32_t)((uint32_t)low + (uint32_t)high);
}

//= tc_pair_word_int32* tc_pair_dot_float32
// Two bfloat16 numbers in a word, the first one lowest, and the sum of the products of the numbers of two words.
static inline int32_t tc_pair_word_int32(float a, float b) {
  const union { float f; uint32_t u; } low = {.f = a}, high = {.f = b};
  return (int32_t)(low.u >> 16 | (high.u & 0xffff0000));
}
static inline int32_t tc_pair_word_int32_at(const void *numbers) {
  int32_t word;
  __builtin_memcpy(&word, numbers, sizeof word);
  return word;
}
static inline float tc_pair_dot_float32(int32_t a, int32_t b) {
  const union { uint32_t u; float f; } left[2] = {{(uint32_t)a << 16}, {(uint32_t)a & 0xffff0000}};
  const union { uint32_t u; float f; } right[2] = {{(uint32_t)b << 16}, {(uint32_t)b & 0xffff0000}};
  return left[0].f * right[0].f + left[1].f * right[1].f;
}

//= TC_EXTREMES
#define TC_EXTREMES(name, type)                                                             \
  static inline type tc_min_##name(type a, type b) { return a < b ? a : b; }                \
  static inline type tc_max_##name(type a, type b) { return a > b ? a : b; }

//= tc_min_bool tc_max_bool
TC_EXTREMES(bool, bool)

//= tc_min_int8 tc_max_int8
TC_EXTREMES(int8, int8_t)

//= tc_min_int16 tc_max_int16
TC_EXTREMES(int16, int16_t)

//= tc_min_int32 tc_max_int32
TC_EXTREMES(int32, int32_t)

//= tc_min_int64 tc_max_int64
TC_EXTREMES(int64, int64_t)

//= tc_min_uint8 tc_max_uint8
TC_EXTREMES(uint8, uint8_t)

//= tc_min_uint16 tc_max_uint16
TC_EXTREMES(uint16, uint16_t)

//= tc_min_uint32 tc_max_uint32
TC_EXTREMES(uint32, uint32_t)

//= tc_min_uint64 tc_max_uint64
TC_EXTREMES(uint64, uint64_t)

//= TC_FLOATING_EXTREMES
// These propagate NaN, which fmin and fmax do not: a comparison with NaN is false, so a is kept where it is one.
#define TC_FLOATING_EXTREMES(name, type)                                                    \
  static inline type tc_min_##name(type a, type b) {                                        \
    const type less = b < a ? b : a;                                                        \
    return b != b ? b : less;                                                               \
  }                                                                                         \
  static inline type tc_max_##name(type a, type b) {                                        \
    const type greater = b > a ? b : a;                                                     \
    return b != b ? b : greater;                                                            \
  }

//= tc_min_float32 tc_max_float32
TC_FLOATING_EXTREMES(float32, float)

//= tc_min_float64 tc_max_float64
TC_FLOATING_EXTREMES(float64, double)

//= tc_least_float32 < tc_min_float32
// The reductions that OpenMP has of its own would lose NaN when lanes are combined.
#pragma omp declare reduction(tc_least_float32:float:omp_out = tc_min_float32(omp_out, omp_in)) \
    initializer(omp_priv = INFINITY)

//= tc_greatest_float32 < tc_max_float32
#pragma omp declare reduction(tc_greatest_float32:float:omp_out = tc_max_float32(omp_out, omp_in)) \
    initializer(omp_priv = -INFINITY)

//= tc_least_float64 < tc_min_float64
#pragma omp declare reduction(tc_least_float64:double:omp_out = tc_min_float64(omp_out, omp_in)) \
    initializer(omp_priv = INFINITY)

//= tc_greatest_float64 < tc_max_float64
#pragma omp declare reduction(tc_greatest_float64:double:omp_out = tc_max_float64(omp_out, omp_in)) \
    initializer(omp_priv = -INFINITY)

//= tc_floor_divide_int32
// Rounds to minus infinity; the divisor is positive.
static inline int32_t tc_floor_divide_int32(int32_t a, int32_t b) { return a / b - (a % b < 0); }

//= tc_floor_divide_int64
// Rounds to minus infinity; the divisor is positive.
static inline int64_t tc_floor_divide_int64(int64_t a, int64_t b) { return a / b - (a % b < 0); }

//= TC_SIGNED_DIVISION
// Truncating division: by zero it gives zero, and the least value over -1 wraps.  WIDE is a type that lanes can divide;
// in it, too, no quotient a / b reaches the next integer, from which it is at least a |a|-th part away.
#define TC_SIGNED_DIVISION(name, type, wide)                                                 \
  static inline type tc_divide_##name(type a, type b) {                                      \
    const type divisor = b == 0 || b == -1 ? 1 : b, quotient = (wide)a / divisor;            \
    return b == 0 ? 0 : b == -1 ? (type)-(uint64_t)a : quotient;                             \
  }                                                                                          \
  static inline type tc_remainder_##name(type a, type b) {                                   \
    const type divisor = b == 0 || b == -1 ? 1 : b, quotient = (wide)a / divisor;            \
    return a - quotient * divisor;                                                           \
  }

//= TC_UNSIGNED_DIVISION
// The same of numbers that are not negative.
#define TC_UNSIGNED_DIVISION(name, type, wide)                                               \
  static inline type tc_divide_##name(type a, type b) {                                      \
    const type quotient = (wide)a / (b == 0 ? 1 : b);                                        \
    return b == 0 ? 0 : quotient;                                                            \
  }                                                                                          \
  static inline type tc_remainder_##name(type a, type b) {                                   \
    const type divisor = b == 0 ? 1 : b, quotient = (wide)a / divisor;                       \
    return a - quotient * divisor;                                                           \
  }

//= tc_divide_int8 tc_remainder_int8
TC_SIGNED_DIVISION(int8, int8_t, float)

//= tc_divide_int16 tc_remainder_int16
TC_SIGNED_DIVISION(int16, int16_t, float)

//= tc_divide_int32 tc_remainder_int32
TC_SIGNED_DIVISION(int32, int32_t, double)

//= tc_divide_int64 tc_remainder_int64
TC_SIGNED_DIVISION(int64, int64_t, int64_t)

//= tc_divide_bool tc_remainder_bool
TC_UNSIGNED_DIVISION(bool, bool, float)

//= tc_divide_uint8 tc_remainder_uint8
TC_UNSIGNED_DIVISION(uint8, uint8_t, float)

//= tc_divide_uint16 tc_remainder_uint16
TC_UNSIGNED_DIVISION(uint16, uint16_t, float)

//= tc_divide_uint32 tc_remainder_uint32
TC_UNSIGNED_DIVISION(uint32, uint32_t, double)

//= tc_divide_uint64 tc_remainder_uint64
TC_UNSIGNED_DIVISION(uint64, uint64_t, uint64_t)

//= tc_abs_int8
static inline int8_t tc_abs_int8(int8_t a) { return a < 0 ? (int8_t)-(uint64_t)a : a; }

//= tc_abs_int16
static inline int16_t tc_abs_int16(int16_t a) { return a < 0 ? (int16_t)-(uint64_t)a : a; }

//= tc_abs_int32
static inline int32_t tc_abs_int32(int32_t a) { return a < 0 ? (int32_t)-(uint64_t)a : a; }

//= tc_abs_int64
static inline int64_t tc_abs_int64(int64_t a) { return a < 0 ? (int64_t)-(uint64_t)a : a; }

//= tc_abs_bool
static inline bool tc_abs_bool(bool a) { return a; }

//= tc_abs_uint8
static inline uint8_t tc_abs_uint8(uint8_t a) { return a; }

//= tc_abs_uint16
static inline uint16_t tc_abs_uint16(uint16_t a) { return a; }

//= tc_abs_uint32
static inline uint32_t tc_abs_uint32(uint32_t a) { return a; }

//= tc_abs_uint64
static inline uint64_t tc_abs_uint64(uint64_t a) { return a; }

//= TC_TO_INTEGER
// Truncates; beyond the type's limits it saturates, and NaN gives 0.  END is the power of two after the greatest value.
// GCC makes trunc(x) of an integer on its way back to a float, and -0 of -0.5; so the integer is made of 0.
#define TC_TO_INTEGER(name, type, source, real, least, greatest, end)                   \
  static inline type tc_##name##_from_##source(real x) {                                \
    const real some = x > -1 && x < 1 ? 0 : x;                                          \
    return x >= end ? greatest : x >= least ? (type)some : x != x ? 0 : least;          \
  }

//= tc_int8_from_float32
TC_TO_INTEGER(int8, int8_t, float32, float, INT8_MIN, INT8_MAX, 0x1p7f)

//= tc_int8_from_float64
TC_TO_INTEGER(int8, int8_t, float64, double, INT8_MIN, INT8_MAX, 0x1p7f)

//= tc_int16_from_float32
TC_TO_INTEGER(int16, int16_t, float32, float, INT16_MIN, INT16_MAX, 0x1p15f)

//= tc_int16_from_float64
TC_TO_INTEGER(int16, int16_t, float64, double, INT16_MIN, INT16_MAX, 0x1p15f)

//= tc_int32_from_float32
TC_TO_INTEGER(int32, int32_t, float32, float, INT32_MIN, INT32_MAX, 0x1p31f)

//= tc_int32_from_float64
TC_TO_INTEGER(int32, int32_t, float64, double, INT32_MIN, INT32_MAX, 0x1p31f)

//= tc_int64_from_float32
TC_TO_INTEGER(int64, int64_t, float32, float, INT64_MIN, INT64_MAX, 0x1p63f)

//= tc_int64_from_float64
TC_TO_INTEGER(int64, int64_t, float64, double, INT64_MIN, INT64_MAX, 0x1p63f)

//= tc_uint8_from_float32
TC_TO_INTEGER(uint8, uint8_t, float32, float, 0, UINT8_MAX, 0x1p8f)

//= tc_uint8_from_float64
TC_TO_INTEGER(uint8, uint8_t, float64, double, 0, UINT8_MAX, 0x1p8f)

//= tc_uint16_from_float32
TC_TO_INTEGER(uint16, uint16_t, float32, float, 0, UINT16_MAX, 0x1p16f)

//= tc_uint16_from_float64
TC_TO_INTEGER(uint16, uint16_t, float64, double, 0, UINT16_MAX, 0x1p16f)

//= tc_uint32_from_float32
TC_TO_INTEGER(uint32, uint32_t, float32, float, 0, UINT32_MAX, 0x1p32f)

//= tc_uint32_from_float64
TC_TO_INTEGER(uint32, uint32_t, float64, double, 0, UINT32_MAX, 0x1p32f)

//= tc_uint64_from_float32
TC_TO_INTEGER(uint64, uint64_t, float32, float, 0, UINT64_MAX, 0x1p64f)

//= tc_uint64_from_float64
TC_TO_INTEGER(uint64, uint64_t, float64, double, 0, UINT64_MAX, 0x1p64f)

//= tc_checked_index
// An index inside the dimension; where it is not, the fault is noted and the read goes to the first element.
static inline int64_t tc_checked_index(int64_t index, int64_t extent, int32_t *faulted, int32_t number) {
  const bool outside = (uint64_t)index >= (uint64_t)extent;
  if (outside) *faulted = number;
  return outside ? 0 : index;
}

//= tc_holds
// Whether a condition holds; where it does not, the fault is noted.
static inline bool tc_holds(bool condition, int32_t *faulted, int32_t number) {
  if (!condition) *faulted = number;
  return condition;
}

//= tc_is_inside
// Whether an index is inside the dimension; where it is not, the fault is noted.
static inline bool tc_is_inside(int64_t index, int64_t extent, int32_t *faulted, int32_t number) {
  const bool outside = (uint64_t)index >= (uint64_t)extent;
  if (outside) *faulted = number;
  return !outside;
}

//= tc_first_iteration
// The last of the iterations lower, lower + step, ... that is not behind the bound; lower where all of them are.
static inline int64_t tc_first_iteration(int64_t lower, int64_t step, int64_t bound) {
  return bound <= lower ? lower : lower + (bound - lower) / step * step;
}

//= tc_round_to_odd
// A double as a float that still knows on which side of every shorter number it lies: rounded towards zero, and the
// last bit set if that lost anything.  Rounding the result again is as good as rounding the double once.
static inline float tc_round_to_odd(double x) {
  union { float f; uint32_t u; } r = {.f = (float)x};
  if (r.f != x && !(r.u & 1)) r.u += fabs(x) > fabsf(r.f) ? 1 : -1;
  return r.f;
}

//= tc_float16
typedef uint16_t tc_float16;

//= tc_float32_from_float16
// Written in integers, without branches: compilers that know a half type still convert it one element at a time.
TC_INLINED float tc_float32_from_float16(tc_float16 x) {
  union { uint32_t u; float f; } r = {.u = (uint32_t)(x & 0x7fff) << 13};
  r.f *= 0x1p112f;  // moves the exponent's bias, and normalizes subnormals
  r.u |= (r.f >= 0x1p16f ? 0x7f800000 : 0) | (uint32_t)(x & 0x8000) << 16;
  return r.f;
}

//= tc_float16_from_float32
TC_INLINED tc_float16 tc_float16_from_float32(float x) {
  union { float f; uint32_t u; } bits = {.f = x}, magnitude = {.f = fabsf(x)}, shifted = {.f = fabsf(x) + 0.5f};
  const uint32_t normal = (magnitude.u - 0x38000000 + 0xfff + (magnitude.u >> 13 & 1)) >> 13;
  const uint32_t subnormal = shifted.u - 0x3f000000;  // the last place of 0.5 is that of subnormal halves
  uint32_t narrow = magnitude.f < 0x1p-14f ? subnormal : normal;
  narrow = magnitude.f >= 0x1p16f ? 0x7c00 : narrow;
  narrow = magnitude.u > 0x7f800000 ? 0x7e00 : narrow;
  return narrow | (bits.u >> 16 & 0x8000);
}

//= tc_float16_from_float64
TC_INLINED tc_float16 tc_float16_from_float64(double x) { return tc_float16_from_float32(tc_round_to_odd(x)); }

//= tc_bfloat16
typedef uint16_t tc_bfloat16;

//= tc_float32_from_bfloat16
TC_INLINED float tc_float32_from_bfloat16(tc_bfloat16 x) {
  union { uint32_t u; float f; } r = {.u = (uint32_t)x << 16};
  return r.f;
}

//= tc_bfloat16_from_float32
TC_INLINED tc_bfloat16 tc_bfloat16_from_float32(float x) {
  union { float f; uint32_t u; } r = {.f = x};
  return x != x ? r.u >> 16 | 0x40 : (r.u + 0x7fff + (r.u >> 16 & 1)) >> 16;
}

//= tc_bfloat16_from_float64
TC_INLINED tc_bfloat16 tc_bfloat16_from_float64(double x) { return tc_bfloat16_from_float32(tc_round_to_odd(x)); }

//= tc_float8_e5m2
// The upper byte of a float16.
typedef uint8_t tc_float8_e5m2;

//= tc_float32_from_float8_e5m2
TC_INLINED float tc_float32_from_float8_e5m2(tc_float8_e5m2 x) {
  union { uint32_t u; float f; } r = {.u = (uint32_t)(x & 0x7f) << 21};
  r.f *= 0x1p112f;  // moves the exponent's bias, and normalizes subnormals
  r.u |= (r.f >= 0x1p16f ? 0x7f800000 : 0) | (uint32_t)(x & 0x80) << 24;
  return r.f;
}

//= tc_float8_e5m2_from_float32
TC_INLINED tc_float8_e5m2 tc_float8_e5m2_from_float32(float x) {
  union { float f; uint32_t u; } bits = {.f = x}, magnitude = {.f = fabsf(x)}, shifted = {.f = fabsf(x) + 0x1p7f};
  const uint32_t normal = (magnitude.u - 0x38000000 + 0xfffff + (magnitude.u >> 21 & 1)) >> 21;
  const uint32_t subnormal = shifted.u - 0x43000000;  // the last place of 128 is that of subnormal numbers
  uint32_t narrow = magnitude.f < 0x1p-14f ? subnormal : normal;
  narrow = magnitude.f >= 0x1p16f ? 0x7c : narrow;
  narrow = magnitude.u > 0x7f800000 ? 0x7e : narrow;
  return narrow | (bits.u >> 24 & 0x80);
}

//= tc_float8_e5m2_from_float64
TC_INLINED tc_float8_e5m2 tc_float8_e5m2_from_float64(double x) {
  return tc_float8_e5m2_from_float32(tc_round_to_odd(x));
}

//= tc_float8_e4m3fn
// Without infinities: what is too large, beyond 464, is NaN.
typedef uint8_t tc_float8_e4m3fn;

//= tc_float32_from_float8_e4m3fn
TC_INLINED float tc_float32_from_float8_e4m3fn(tc_float8_e4m3fn x) {
  union { uint32_t u; float f; } r = {.u = (uint32_t)(x & 0x7f) << 20};
  r.f *= 0x1p120f;  // moves the exponent's bias, and normalizes subnormals
  r.u |= ((x & 0x7f) == 0x7f ? 0x7fc00000 : 0) | (uint32_t)(x & 0x80) << 24;
  return r.f;
}

//= tc_float8_e4m3fn_from_float32
TC_INLINED tc_float8_e4m3fn tc_float8_e4m3fn_from_float32(float x) {
  union { float f; uint32_t u; } bits = {.f = x}, magnitude = {.f = fabsf(x)}, shifted = {.f = fabsf(x) + 0x1p14f};
  const uint32_t normal = (magnitude.u - 0x3c000000 + 0x7ffff + (magnitude.u >> 20 & 1)) >> 20;
  const uint32_t subnormal = shifted.u - 0x46800000;  // the last place of 16384 is that of subnormal numbers
  uint32_t narrow = magnitude.f < 0x1p-6f ? subnormal : normal;
  narrow = magnitude.f <= 464.0f ? narrow : 0x7f;
  return narrow | (bits.u >> 24 & 0x80);
}

//= tc_float8_e4m3fn_from_float64
TC_INLINED tc_float8_e4m3fn tc_float8_e4m3fn_from_float64(double x) {
  return tc_float8_e4m3fn_from_float32(tc_round_to_odd(x));
}

//= tc_nextafter_float16 tc_nextafter_bfloat16 tc_nextafter_float8_e5m2 tc_nextafter_float8_e4m3fn
// The neighbour among the halves, of an operand that is rounded to one first.
#define TC_NEXTAFTER(half, narrow, widen)                              \
  TC_INLINED float tc_nextafter_##half(float x, float y) {             \
    tc_##half bits = narrow(x);                                        \
    const float from = widen(bits), to = widen(narrow(y));             \
    if (from != from || to != to) return from + to;                    \
    if (from == to) return to;                                         \
    if (from == 0) return to < 0 ? -widen(0x01) : widen(0x01);         \
    return widen(bits + ((from < to) == (from > 0) ? 1 : -1));         \
  }
TC_NEXTAFTER(float16, tc_float16_from_float32, tc_float32_from_float16)
TC_NEXTAFTER(bfloat16, tc_bfloat16_from_float32, tc_float32_from_bfloat16)
TC_NEXTAFTER(float8_e5m2, tc_float8_e5m2_from_float32, tc_float32_from_float8_e5m2)
TC_NEXTAFTER(float8_e4m3fn, tc_float8_e4m3fn_from_float32, tc_float32_from_float8_e4m3fn)

// Functions that the C library lacks, or that compilers cannot run in lanes.  Those of float32 are computed in double
// where that is simplest.

//= TC_FMA
// The functions of float32 in which neural networks spend their time call nothing and have no branches: compilers run
// them in lanes everywhere, in conditional expressions too, and every lane and tail has the same bits.  They are off by
// less than 3 ulps.  Which steps of their minimax polynomials are fused is not left to the compiler.
#ifdef __FP_FAST_FMAF
#define TC_FMA(a, b, c) fmaf(a, b, c)
#else
#define TC_FMA(a, b, c) ((a) * (b) + (c))
#endif

//= tc_capped tc_power_of_two TC_LOG2_E TC_SHIFT tc_exp_rest tc_exp_fraction
// The lesser of two numbers that are not negative, compared as integers: of two floating comparisons in a row compilers
// make branches, whose parts they then compute all.  The cap of NaN is a number.
TC_INLINED float tc_capped(float x, float most) {
  union { float f; int32_t i; } r = {.f = x}, limit = {.f = most};
  r.i = r.i < limit.i ? r.i : limit.i;
  return r.f;
}
// 2^(n - 127) for the nine last bits n of a float or an integer; those before them are shifted out.
TC_INLINED float tc_power_of_two(uint32_t n) {
  union { uint32_t u; float f; } r = {.u = n << 23};
  return r.f;
}
#define TC_LOG2_E 0x1.715476p+0f
#define TC_SHIFT 0x1.8p23f  // added to a number, it moves the nearest integer to the last bits
// (e^r - 1 - r) / r^2 for the fraction r of an exponent.
TC_INLINED float tc_exp_rest(float r) {
  const float square = r * r, low = TC_FMA(0x1.55548cp-3f, r, 0x1.fffffcp-2f);
  const float high = TC_FMA(0x1.6ab89ep-10f, square, TC_FMA(0x1.123d7p-7f, r, 0x1.55585ap-5f));
  return TC_FMA(high, square, low);
}
// e^x / 2^n; n is the integer nearest to x log2(e).
TC_INLINED float tc_exp_fraction(float x, float n) {
  const float r = TC_FMA(n, -0x1.7f7d1cp-20f, TC_FMA(n, -0x1.62e4p-1f, x));
  return TC_FMA(tc_exp_rest(r), r * r, 1.0f + r);
}

//= tc_exp_less_one
// e^r - 1 for the fraction r of an exponent, to a unit of its own last place.
TC_INLINED float tc_exp_less_one(float r) {
  return TC_FMA(tc_exp_rest(r), r * r, r);
}

//= tc_exp_float32
TC_INLINED float tc_exp_float32(float x) {
  x = x < -104.0f ? -104.0f : x;
  // Far beyond the greatest x with a finite result, n stays 140, and the fraction grows to infinity.
  const float shift = TC_SHIFT + 254.0f;
  union { float f; uint32_t u; } n = {.f = tc_capped(TC_FMA(x, TC_LOG2_E, shift), shift + 140.0f)};
  // Two steps, because 2^n alone may be subnormal or infinite when the result is not.
  return tc_exp_fraction(x, n.f - shift) * tc_power_of_two(n.u >> 1) * tc_power_of_two(n.u - (n.u >> 1));
}

//= tc_expm1_float32
// (2^n - 1) + 2^n (e^r - 1), which loses nothing where n is 0; 2^n in two steps, as in tc_exp_float32.
TC_INLINED float tc_expm1_float32(float x) {
  x = x < -18.0f ? -18.0f : x;
  const float shift = TC_SHIFT + 254.0f;
  union { float f; uint32_t u; } n = {.f = tc_capped(TC_FMA(x, TC_LOG2_E, shift), shift + 140.0f)};
  const float whole = n.f - shift, r = TC_FMA(whole, -0x1.7f7d1cp-20f, TC_FMA(whole, -0x1.62e4p-1f, x));
  const uint32_t half = n.u >> 1, rest = n.u - half;
  const float power = tc_power_of_two(half), inverse = tc_power_of_two(254 - rest);
  return copysignf(TC_FMA(power, tc_exp_less_one(r), power - inverse) * tc_power_of_two(rest), x);
}

//= tc_log_exponent tc_log_power tc_log_sum tc_log_edge
// 2^23 n for the n with x / 2^n from 2/3 to 4/3, for normal x; and 2^-n.
TC_INLINED int32_t tc_log_exponent(float x) {
  const union { float f; int32_t i; } r = {.f = x};
  return (r.i - 0x3f2aaaab) & ~0x7fffff;
}
TC_INLINED float tc_log_power(int32_t exponent) {
  const union { int32_t i; float f; } r = {.i = 0x40800000 - exponent};
  return r.f * 0.25f;
}
// log(2^n (1 + f)) for f from -1/3 to 1/3; the exponent is 2^23 n.  It is infinite, or NaN, where f is.
TC_INLINED float tc_log_sum(float exponent, float f) {
  const float square = f * f;
  const float p0 = TC_FMA(0x1.5554fap-2f, f, -0x1.ffffd6p-2f), p2 = TC_FMA(0x1.99d428p-3f, f, -0x1.00148p-2f);
  const float p4 = TC_FMA(0x1.1ea256p-3f, f, -0x1.5032eap-3f), p6 = TC_FMA(0x1.1f4284p-3f, f, -0x1.3b2844p-3f);
  const float p = TC_FMA(TC_FMA(p6, square, p4), square * square, TC_FMA(p2, square, p0));
  return TC_FMA(exponent, 0x1.62e43p-24f, TC_FMA(p, square, f));
}
// The logarithm of x, found for what is above 0; x is not -0.
TC_INLINED float tc_log_edge(float x, float found) {
  const union { float f; int32_t i; } r = {.f = x}, sum = {.f = found};
  const union { int32_t i; float f; } least = {.i = (int32_t)0xff800000}, chosen = {.i = r.i > 0 ? sum.i : r.i >> 31 | least.i};
  return chosen.f;
}

//= tc_log_float32
TC_INLINED float tc_log_float32(float x) {
  const bool small = x < 0x1p-124f;
  const float y = small ? x * 0x1p23f : x;
  const int32_t n = tc_log_exponent(y);
  return tc_log_edge(x + 0.0f, tc_log_sum(small ? n - (23 << 23) : n, TC_FMA(y, tc_log_power(n), -1.0f)));
}

//= tc_log1p_float32
// The exponent is that of 1 + x, but the fraction is of x itself, of which the sum may have lost the last bits.
TC_INLINED float tc_log1p_float32(float x) {
  const float y = 1.0f + x;
  const int32_t n = tc_log_exponent(y);
  const float power = tc_log_power(n);
  return copysignf(tc_log_edge(y, tc_log_sum(n, TC_FMA(x, power, power - 1.0f))), x);
}

//= tc_tanh_float32
// e / (e + 2) for e = e^2t - 1, which is (2^n - 1) + 2^n (e^r - 1), and loses nothing where n is 0.
TC_INLINED float tc_tanh_float32(float x) {
  float t = fabsf(x);
  t = t > 9.1f ? 9.1f : t;
  const float z = t + t, shift = TC_SHIFT + 127.0f;
  union { float f; uint32_t u; } n = {.f = TC_FMA(z, TC_LOG2_E, shift)};
  const float power = tc_power_of_two(n.u), r = TC_FMA(n.f - shift, -0x1.62e43p-1f, z);
  const float e = TC_FMA(power, tc_exp_less_one(r), power - 1.0f);
  return copysignf(e / (e + 2.0f), x);
}

//= tc_erf_float32
// 1 - 2^-z for the binary logarithm -z of 1 - erf(t), where z is t (2 + h) for a polynomial h; 2^-z is 2^n (1 + e), and
// (1 - 2^n) - 2^n e loses nothing where n is 0.
TC_INLINED float tc_erf_float32(float x) {
  float t = fabsf(x);
  t = t > 3.93f ? 3.93f : t;
  const float square = t * t;
  const float h0 = TC_FMA(0x1.d63e38p-1f, t, -0x1.7d05ecp-2f), h2 = TC_FMA(-0x1.c8b5c8p-6f, t, 0x1.2fc79p-3f);
  const float h4 = TC_FMA(0x1.d96556p-10f, t, 0x1.373e1p-12f), h6 = TC_FMA(0x1.eca53p-15f, t, -0x1.202deap-11f);
  const float h = TC_FMA(TC_FMA(TC_FMA(h6, square, h4), square, h2), square, h0);
  const float z = TC_FMA(h, t, t + t), shift = TC_SHIFT + 127.0f;
  union { float f; uint32_t u; } n = {.f = shift - z};
  const float power = tc_power_of_two(n.u), r = z + (n.f - shift);
  float e = 0x1.4308fap-13f;
  e = TC_FMA(e, r, -0x1.5f07b4p-10f);
  e = TC_FMA(e, r, 0x1.3b2bap-7f);
  e = TC_FMA(e, r, -0x1.c6af6ep-5f);
  e = TC_FMA(e, r, 0x1.ebfbdep-3f);
  e = TC_FMA(e, r, 0x1.3a37ap-2f);
  return copysignf(TC_FMA(-power, TC_FMA(e, r, -r), 1.0f - power), x);
}

//= tc_erf_float64
static inline double tc_erf_float64(double x) { return erf(x); }

//= tc_fmod_float32 < TC_INLINED
// Exact, in lanes: takes multiples of |y| from |x|, whose quotient is below 2^277, by some bits of it at a time.  Each
// multiple is the nearest one up to rounding, so that at most 3/4 |y| 2^n is left, exactly: it has 26 bits at most.
#ifdef __FP_FAST_FMA
#define TC_LESS(r, q, y) fma(-(q), y, r)
#define TC_HIGHEST 0x1p250
#define TC_NEXT 0x1p-50
enum { TC_PIECES = 6 };
#else
#define TC_LESS(r, q, y) ((r) - (q) * (y))  // the product has 52 bits at most
#define TC_HIGHEST 0x1p252
#define TC_NEXT 0x1p-28
enum { TC_PIECES = 10 };
#endif
TC_INLINED float tc_fmod_float32(float x, float y) {
  const double divisor = fabsf(y), inverse = 1 / divisor;
  double rest = fabsf(x), scale = TC_HIGHEST;
  #pragma GCC unroll 10
  for (int piece = 0; piece < TC_PIECES; piece++, scale *= TC_NEXT) {
    const double quotient = rest * (inverse * (1 / scale)) + 0x1.8p52 - 0x1.8p52;
    rest = TC_LESS(rest, quotient, divisor * scale);
  }
  const float found = rest < 0 ? rest + divisor : rest, own = found != found ? found : copysignf(found, x);
  return fabsf(y) == INFINITY && fabsf(x) < INFINITY ? x : own;
}

//= tc_tan_float32
static inline float tc_tan_float32(float x) { return tan(x); }

//= tc_fmax_* tc_fmin_*
static inline float tc_fmax_float32(float x, float y) { return x != x ? y : y > x ? y : x; }
static inline float tc_fmin_float32(float x, float y) { return x != x ? y : y < x ? y : x; }
static inline double tc_fmax_float64(double x, double y) { return x != x ? y : y > x ? y : x; }
static inline double tc_fmin_float64(double x, double y) { return x != x ? y : y < x ? y : x; }

//= tc_fdim_*
static inline float tc_fdim_float32(float x, float y) { return x > y ? x - y : x <= y ? 0 : NAN; }
static inline double tc_fdim_float64(double x, double y) { return x > y ? x - y : x <= y ? 0 : NAN; }

//= tc_fdivide_*
static inline float tc_fdivide_float32(float x, float y) { return x / y; }
static inline double tc_fdivide_float64(double x, double y) { return x / y; }

//= tc_rsqrt_*
static inline float tc_rsqrt_float32(float x) { return 1 / sqrtf(x); }
static inline double tc_rsqrt_float64(double x) { return 1 / sqrt(x); }

//= tc_rcbrt_*
static inline double tc_rcbrt_float64(double x) {
  const double y = 1 / cbrt(x);
  // One step of Newton's method on 1 - x y^3, because cbrt alone may be off by almost 4 ulps.
  return y != 0 && isfinite(y) ? fma(y, fma(-(x * y) * y, y, 1) / 3, y) : y;
}
static inline float tc_rcbrt_float32(float x) { return 1 / cbrt(x); }

//= tc_exp10_*
static inline double tc_exp10_float64(double x) {
  x = x < -400 ? -400 : x;
  x = x > 400 ? 400 : x;
  // 10^x = 2^k 10^r; the product of k and the head of log10(2) is exact.  The last bits of the sum are k + 2046.
  union { double d; uint64_t u; } shifted = {.d = x * 0x1.a934f0979a371p+1 + (0x1.8p52 + 2046)}, first, second;
  const double k = shifted.d - (0x1.8p52 + 2046);
  const double r = fma(-k, 0x1.cff7988f8959bp-41, fma(-k, 0x1.34413509f4p-2, x));
  // 2^k in two steps, because it may overflow or be subnormal when the result does not or is not.
  first.u = shifted.u >> 1 << 52, second.u = (shifted.u - (shifted.u >> 1)) << 52;
  return exp(r * 0x1.26bb1bbb55516p+1) * first.d * second.d;
}
static inline float tc_exp10_float32(float x) { return exp2(x * 0x1.a934f0979a371p+1); }

//= tc_sinpi_* tc_cospi_*
// sin(pi (x + shift / 2)); all reductions of the argument are exact.
static inline double tc_sinpi_shifted(double x, int shift) {
  const double r = x - 2 * rint(x / 2);
  if (!(fabs(r) <= 1)) return NAN;
  const double turns = rint(2 * r), angle = 0x1.921fb54442d18p+1 * (r - turns / 2);
  const int quadrant = ((int)turns + shift) & 3;
  const double s = quadrant & 1 ? cos(angle) : sin(angle);
  if (s == 0) return shift ? 0 : copysign(0.0, x);
  return quadrant & 2 ? -s : s;
}
static inline double tc_sinpi_float64(double x) { return tc_sinpi_shifted(x, 0); }
static inline double tc_cospi_float64(double x) { return tc_sinpi_shifted(x, 1); }
static inline float tc_sinpi_float32(float x) { return tc_sinpi_shifted(x, 0); }
static inline float tc_cospi_float32(float x) { return tc_sinpi_shifted(x, 1); }

//= tc_norm3d_* tc_norm4d_* tc_rnorm3d_* tc_rnorm4d_* tc_rhypot_*
// Computes the root of the sum of squares, or its reciprocal, without overflow or underflow in between.
static inline double tc_norm(double x, double y, double z, double w, bool reciprocal) {
  double greatest = 0;  // of those that are numbers
  greatest = fabs(x) > greatest ? fabs(x) : greatest;
  greatest = fabs(y) > greatest ? fabs(y) : greatest;
  greatest = fabs(z) > greatest ? fabs(z) : greatest;
  greatest = fabs(w) > greatest ? fabs(w) : greatest;
  const double scale = greatest > 0x1p500 ? 0x1p-600 : greatest < 0x1p-400 ? 0x1p600 : 1;
  x *= scale, y *= scale, z *= scale, w *= scale;
  const double root = sqrt(x * x + y * y + z * z + w * w);
  if (reciprocal) return greatest == INFINITY ? 0 : scale / root;
  return greatest == INFINITY ? INFINITY : root / scale;
}
static inline double tc_norm3d_float64(double x, double y, double z) { return tc_norm(x, y, z, 0, false); }
static inline double tc_rnorm3d_float64(double x, double y, double z) { return tc_norm(x, y, z, 0, true); }
static inline double tc_norm4d_float64(double x, double y, double z, double w) { return tc_norm(x, y, z, w, false); }
static inline double tc_rnorm4d_float64(double x, double y, double z, double w) { return tc_norm(x, y, z, w, true); }
static inline double tc_rhypot_float64(double x, double y) { return tc_norm(x, y, 0, 0, true); }
static inline float tc_norm3d_float32(float x, float y, float z) { return tc_norm(x, y, z, 0, false); }
static inline float tc_rnorm3d_float32(float x, float y, float z) { return tc_norm(x, y, z, 0, true); }
static inline float tc_norm4d_float32(float x, float y, float z, float w) { return tc_norm(x, y, z, w, false); }
static inline float tc_rnorm4d_float32(float x, float y, float z, float w) { return tc_norm(x, y, z, w, true); }
static inline float tc_rhypot_float32(float x, float y) { return tc_norm(x, y, 0, 0, true); }

//= tc_lgamma_*
// lgamma itself also writes the global signgam, which threads would race for.
static inline double tc_lgamma_float64(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
static inline float tc_lgamma_float32(float x) {
  int sign;
  return lgammaf_r(x, &sign);
}

//= tc_erfcx_*
// exp(x^2) erfc(x)
static inline double tc_erfcx_float64(double x) {
  if (x > 25) {
    // erfc will underflow; here its asymptotic series has converged.
    const double t = 0.5 / (x * x);
    return 0x1.20dd750429b6dp-1 / x * (1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t * (1 - 9 * t)))));
  }
  const double square = x * x, product = exp(square) * erfc(x);
  return isfinite(product) ? fma(product, fma(x, x, -square), product) : product;
}
static inline float tc_erfcx_float32(float x) { return tc_erfcx_float64(x); }

//= tc_normcdf_*
// The argument -x / sqrt(2) of erfc needs more than a double: far out, its last bit changes hundreds of the result's.
static inline double tc_normcdf_float64(double x) {
  if (!(fabs(x) < 40)) return x < 0 ? 0 : x > 0 ? 1 : x;
  const double head = x * -0x1.6a09e667f3bcdp-1;
  const double tail = fma(x, -0x1.6a09e667f3bcdp-1, -head) + x * 0x1.bdd3413b26456p-55;
  return 0.5 * (erfc(head) - tail * 0x1.20dd750429b6dp+0 * exp(-head * head));
}
static inline float tc_normcdf_float32(float x) { return tc_normcdf_float64(x); }

//= tc_erfinv_* tc_erfcinv_* tc_normcdfinv_*
// The inverse of erf on -0.5 <= x <= 0.5: its Taylor polynomial, refined by Halley's method.
static inline double tc_erfinv_central(double x) {
  const double s = x * x;
  double w = x * (0x1.c5bf891b4ef6bp-1 + s * (0x1.db29fb2fee5e3p-3 + s * 0x1.053c2c0ab91c4p-3));
  for (int step = 0; step < 2; step++) {
    const double u = (erf(w) - x) / (0x1.20dd750429b6dp+0 * exp(-w * w));
    w -= u / (1 + w * u);
  }
  return w;
}
// The inverse of erfc on 0 < y <= 0.5: Winitzki's formula, refined by Halley's method on log(erfc), because erfc
// itself underflows.
static inline double tc_erfcinv_tail(double y) {
  const double l = log(y), m = l + log(2 - y), t = 4.33 + m / 2;
  double w = sqrt(sqrt(t * t - m / 0.147) - t);
  for (int step = 0; step < 2; step++) {
    const double scaled = tc_erfcx_float64(w), slope = 0x1.20dd750429b6dp+0 / scaled;
    const double f = fma(-w, w, log(scaled) - l);
    w += f / (slope - f * (w - slope / 2));
  }
  return w;
}
static inline double tc_erfinv_float64(double x) {
  const double distance = fabs(x);
  if (distance <= 0.5) return tc_erfinv_central(x);
  return distance < 1 ? copysign(tc_erfcinv_tail(1 - distance), x) : distance == 1 ? x * INFINITY : NAN;
}
static inline double tc_erfcinv_float64(double y) {
  if (y >= 0.5 && y <= 1.5) return tc_erfinv_central(1 - y);
  if (y > 0 && y < 2) return y < 1 ? tc_erfcinv_tail(y) : -tc_erfcinv_tail(2 - y);
  return y == 0 ? INFINITY : y == 2 ? -INFINITY : NAN;
}
static inline double tc_normcdfinv_float64(double p) { return -0x1.6a09e667f3bcdp+0 * tc_erfcinv_float64(2 * p); }
static inline float tc_erfinv_float32(float x) { return tc_erfinv_float64(x); }
static inline float tc_erfcinv_float32(float y) { return tc_erfcinv_float64(y); }
static inline float tc_normcdfinv_float32(float p) { return tc_normcdfinv_float64(p); }

//= tc_cyl_bessel_i0_* tc_cyl_bessel_i1_*
// The modified Bessel functions of the first kind, order 0 or 1.
static inline double tc_cyl_bessel_i(double x, int order) {
  const double z = fabs(x);
  if (z > 720) return order == 0 ? INFINITY : copysign((double)INFINITY, x);
  double term = 1, sum = 1;
  if (!(z > 20)) {
    const double q = 0.25 * z * z;
    for (int k = 1; term > 0x1p-56 * sum; k++) sum += term *= q / (k * (k + order));
    return order == 0 ? sum : 0.5 * x * sum;
  }
  // The asymptotic series; its terms fall until k is about 2 z, far below the last bit.
  for (int k = 1; fabs(term) > 0x1p-56; k++) sum += term *= ((2 * k - 1) * (2 * k - 1) - 4 * order) / (8 * k * z);
  const double root = exp(0.5 * z);  // exp(z) overflows before the result does
  const double value = root * (sum / sqrt(0x1.921fb54442d18p+2 * z)) * root;
  return order == 0 ? value : copysign(value, x);
}
static inline double tc_cyl_bessel_i0_float64(double x) { return tc_cyl_bessel_i(x, 0); }
static inline double tc_cyl_bessel_i1_float64(double x) { return tc_cyl_bessel_i(x, 1); }
static inline float tc_cyl_bessel_i0_float32(float x) { return tc_cyl_bessel_i(x, 0); }
static inline float tc_cyl_bessel_i1_float32(float x) { return tc_cyl_bessel_i(x, 1); }
