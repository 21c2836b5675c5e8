// What C's compilers are told of functions of the library.

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
