// What C's compilers are told of functions of the library, and what they make lanes of that GPUs have instructions for.

//= acos acosf acosh acoshf asin asinf asinh asinhf atan atanf atanh atanhf cbrt cbrtf cos cosf cosh coshf erf erfc erfcf exp exp2 exp2f expm1 log log10 log10f log1p log2 log2f sin sinf sinh sinhf tan tanh atan2 atan2f hypot hypotf pow powf
// glibc has versions of these for lanes, at most 4 ulps off, but declares them only under -ffast-math.  Their last bits
// differ between lanes, shorter lanes and scalars.  Left out are those of float32 that are computed otherwise in numerics.h.
#if defined(__x86_64__) && defined(__GLIBC_PREREQ)
#define TC_LANES(result, name, ...) _Pragma("omp declare simd notinbranch") result name(__VA_ARGS__);
#define TC_LANES_1(name) TC_LANES(double, name, double) TC_LANES(float, name##f, float)
#define TC_LANES_2(name) TC_LANES(double, name, double, double) TC_LANES(float, name##f, float, float)
#if __GLIBC_PREREQ(2, 22)
TC_LANES_1(cos) TC_LANES(double, exp, double) TC_LANES(double, log, double) TC_LANES_1(sin) TC_LANES_2(pow)
#endif
#if __GLIBC_PREREQ(2, 35)
TC_LANES_1(acos) TC_LANES_1(acosh) TC_LANES_1(asin) TC_LANES_1(asinh) TC_LANES_1(atan) TC_LANES_1(atanh)
TC_LANES_1(cbrt) TC_LANES_1(cosh) TC_LANES(double, erf, double) TC_LANES_1(erfc) TC_LANES_1(exp2)
TC_LANES(double, expm1, double) TC_LANES_1(log10) TC_LANES(double, log1p, double) TC_LANES_1(log2) TC_LANES_1(sinh)
TC_LANES(double, tan, double) TC_LANES(double, tanh, double)
TC_LANES_2(atan2) TC_LANES_2(hypot)
#endif
#endif

//= TC_TO_INT64 TC_TO_UINT64
// As TC_TO_INTEGER, by the bits of a number, whose halves processors convert in lanes; few do so with the whole.
// SMALL: the bits of the power of two after the greatest value; INFINITE: those of infinity; what is above them is NaN.
#define TC_TO_LONG(name, type, source, real, bits, most, small, infinite, result)           \
  static inline type tc_##name##_from_##source(real x) {                                    \
    const union { real x; bits i; } given = {.x = x};                                       \
    const bits magnitude = given.i & most;                                                  \
    const bits fits = -(bits)(magnitude < small), nan = -(bits)(magnitude > infinite);      \
    const union { bits i; real x; } size = {.i = magnitude & fits};                         \
    const uint32_t high = (uint32_t)(size.x * (real)0x1p-32);                               \
    const uint32_t low = (uint32_t)(size.x - (real)high * (real)0x1p32);                    \
    const uint64_t found = (uint64_t)high << 32 | low;                                      \
    const int64_t sign = given.i >> (8 * sizeof(bits) - 1), past = ~(fits | nan);           \
    return result;                                                                          \
  }
#define TC_TO_INT64(source, real, ...)                                                      \
  TC_TO_LONG(int64, int64_t, source, real, __VA_ARGS__, ((found ^ sign) - sign) | (past & (INT64_MAX ^ sign)))
#define TC_TO_UINT64(source, real, ...)                                                     \
  TC_TO_LONG(uint64, uint64_t, source, real, __VA_ARGS__, (found | past) & ~sign)

//= tc_int64_from_float32
TC_TO_INT64(float32, float, int32_t, INT32_MAX, 0x5f000000, 0x7f800000)

//= tc_int64_from_float64
TC_TO_INT64(float64, double, int64_t, INT64_MAX, 0x43e0000000000000, 0x7ff0000000000000)

//= tc_uint64_from_float32
TC_TO_UINT64(float32, float, int32_t, INT32_MAX, 0x5f800000, 0x7f800000)

//= tc_uint64_from_float64
TC_TO_UINT64(float64, double, int64_t, INT64_MAX, 0x43f0000000000000, 0x7ff0000000000000)
