// What headers bring elsewhere.

//= TC_INLINED
#define TC_INLINED static inline
//= int8_t
typedef char int8_t;
//= int16_t
typedef short int16_t;
//= int32_t
typedef int int32_t;
//= int64_t
typedef long int64_t;
//= uint8_t
typedef uchar uint8_t;
//= uint16_t
typedef ushort uint16_t;
//= uint32_t
typedef uint uint32_t;
//= uint64_t
typedef ulong uint64_t;
//= INT8_MIN
#define INT8_MIN CHAR_MIN
//= INT8_MAX
#define INT8_MAX CHAR_MAX
//= UINT8_MAX
#define UINT8_MAX UCHAR_MAX
//= INT16_MIN
#define INT16_MIN SHRT_MIN
//= INT16_MAX
#define INT16_MAX SHRT_MAX
//= UINT16_MAX
#define UINT16_MAX USHRT_MAX
//= INT32_MIN
#define INT32_MIN INT_MIN
//= INT32_MAX
#define INT32_MAX INT_MAX
//= UINT32_MAX
#define UINT32_MAX UINT_MAX
//= INT64_MIN
#define INT64_MIN LONG_MIN
//= INT64_MAX
#define INT64_MAX LONG_MAX
//= UINT64_MAX
#define UINT64_MAX ULONG_MAX

// Functions are overloaded.
//= acosf
#define acosf acos
//= acoshf
#define acoshf acosh
//= asinf
#define asinf asin
//= asinhf
#define asinhf asinh
//= atanf
#define atanf atan
//= atan2f
#define atan2f atan2
//= atanhf
#define atanhf atanh
//= cbrtf
#define cbrtf cbrt
//= ceilf
#define ceilf ceil
//= copysignf
#define copysignf copysign
//= cosf
#define cosf cos
//= coshf
#define coshf cosh
//= erfcf
#define erfcf erfc
//= exp2f
#define exp2f exp2
//= expm1f
#define expm1f expm1
//= fabsf
#define fabsf fabs
//= floorf
#define floorf floor
//= fmaf
#define fmaf fma
//= fmodf
#define fmodf fmod
//= hypotf
#define hypotf hypot
//= lgammaf_r
#define lgammaf_r lgamma_r
//= log10f
#define log10f log10
//= log1pf
#define log1pf log1p
//= log2f
#define log2f log2
//= logbf
#define logbf logb
//= logf
#define logf log
//= nextafterf
#define nextafterf nextafter
//= powf
#define powf pow
//= remainderf
#define remainderf remainder
//= roundf
#define roundf round
//= sinf
#define sinf sin
//= sinhf
#define sinhf sinh
//= sqrtf
#define sqrtf sqrt
//= tanf
#define tanf tan
//= tgammaf
#define tgammaf tgamma
//= truncf
#define truncf trunc
