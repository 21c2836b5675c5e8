// Vectors: loads, stores, squares of them turned, and copies past the caches.  Sections as in numerics.h.

//= tc_float32x* tc_float64x* tc_load_float* tc_store_float* tc_load_part_float* tc_store_part_float* tc_splat_float*
// Vectors of all widths that register tiles use.  The partial ones touch the first n elements in memory only.
#define TC_VECTOR(name, type, count)                                                                                  \
  typedef type tc_##name##x##count __attribute__((vector_size(count * sizeof(type))));                                \
  typedef tc_##name##x##count tc_any_##name##x##count __attribute__((aligned(sizeof(type)), may_alias));              \
  static inline tc_##name##x##count tc_load_##name##x##count(const type *p) {                                         \
    return *(const tc_any_##name##x##count *)p;                                                                       \
  }                                                                                                                   \
  static inline void tc_store_##name##x##count(type *p, tc_##name##x##count v) { *(tc_any_##name##x##count *)p = v; } \
  /* x - 0 is x, also for -0 */                                                                                       \
  static inline tc_##name##x##count tc_splat_##name##x##count(type x) { return x - (tc_##name##x##count){0}; }
#define TC_PARTS(name, type, count)                                                                                   \
  static inline tc_##name##x##count tc_load_part_##name##x##count(const type *p, int n) {                             \
    tc_##name##x##count v = {0};                                                                                      \
    for (int i = 0; i < n; i++) v[i] = p[i];                                                                          \
    return v;                                                                                                         \
  }                                                                                                                   \
  static inline void tc_store_part_##name##x##count(type *p, tc_##name##x##count v, int n) {                          \
    for (int i = 0; i < n; i++) p[i] = v[i];                                                                          \
  }
#define TC_MASKED(name, type, count, mask, load, store)                                                               \
  static inline tc_##name##x##count tc_load_part_##name##x##count(const type *p, int n) {                             \
    return load((const void *)p, (tc_##name##x##count){0}, (mask)((1u << n) - 1));                                    \
  }                                                                                                                   \
  static inline void tc_store_part_##name##x##count(type *p, tc_##name##x##count v, int n) {                          \
    store((void *)p, v, (mask)((1u << n) - 1));                                                                       \
  }
// Loads whose masks lie in vectors, and stores in halves: on some processors such stores take dozens of cycles.
#define TC_HALVES(name, type, count, half, load)                                                                      \
  static inline tc_##name##x##count tc_load_part_##name##x##count(const type *p, int n) {                             \
    return load((const void *)p, *(const tc_masks_##name##x##count *)(tc_masks + 8 - n * (int)(sizeof(type) / 4)));   \
  }                                                                                                                   \
  static inline void tc_store_part_##name##x##count(type *p, tc_##name##x##count v, int n) {                          \
    if (n >= count) {                                                                                                 \
      tc_store_##name##x##count(p, v);                                                                                \
      return;                                                                                                         \
    }                                                                                                                 \
    tc_##name##x##half part = (tc_##name##x##half)TC_ELEMENTS_##half(v, 0);                                           \
    if (n >= half) {                                                                                                  \
      tc_store_##name##x##half(p, part);                                                                              \
      part = (tc_##name##x##half)TC_ELEMENTS_##half(v, half);                                                         \
    }                                                                                                                 \
    const int done = n >= half ? half : 0;                                                                            \
    tc_store_part_##name##x##half(p + done, part, n - done);                                                          \
  }
#define TC_ELEMENTS_2(v, i) {v[i], v[i + 1]}
#define TC_ELEMENTS_4(v, i) {v[i], v[i + 1], v[i + 2], v[i + 3]}
#define TC_MASK(name, integer, count) \
  typedef integer tc_masks_##name##x##count __attribute__((vector_size(count * sizeof(integer)), aligned(4), may_alias));
#if defined(__AVX__) && !defined(__AVX512VL__)
static const int32_t tc_masks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
TC_MASK(float32, int32_t, 4) TC_MASK(float32, int32_t, 8) TC_MASK(float64, long long, 4)
#endif
TC_VECTOR(float32, float, 2) TC_PARTS(float32, float, 2)
TC_VECTOR(float64, double, 2) TC_PARTS(float64, double, 2)
TC_VECTOR(float32, float, 4)
#ifdef __AVX512VL__
TC_MASKED(float32, float, 4, unsigned char, __builtin_ia32_loadups128_mask, __builtin_ia32_storeups128_mask)
#elif defined(__AVX__)
TC_HALVES(float32, float, 4, 2, __builtin_ia32_maskloadps)
#else
TC_PARTS(float32, float, 4)
#endif
#ifdef __AVX512VL__
TC_VECTOR(float32, float, 8)
TC_MASKED(float32, float, 8, unsigned char, __builtin_ia32_loadups256_mask, __builtin_ia32_storeups256_mask)
TC_VECTOR(float64, double, 4)
TC_MASKED(float64, double, 4, unsigned char, __builtin_ia32_loadupd256_mask, __builtin_ia32_storeupd256_mask)
#elif defined(__AVX__)
TC_VECTOR(float32, float, 8)
TC_HALVES(float32, float, 8, 4, __builtin_ia32_maskloadps256)
TC_VECTOR(float64, double, 4)
TC_HALVES(float64, double, 4, 2, __builtin_ia32_maskloadpd256)
#endif
#ifdef __AVX512F__
TC_VECTOR(float32, float, 16)
TC_MASKED(float32, float, 16, unsigned short, __builtin_ia32_loadups512_mask, __builtin_ia32_storeups512_mask)
TC_VECTOR(float64, double, 8)
TC_MASKED(float64, double, 8, unsigned char, __builtin_ia32_loadupd512_mask, __builtin_ia32_storeupd512_mask)
#endif

//= tc_load_second_float* tc_load_second_part_float* < tc_float32x* tc_load_part_float*
// Every second element; what lies behind the last one of these is not read.
#ifdef __clang__
#define TC_SHUFFLE(a, b, places, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TC_SHUFFLE(a, b, places, ...) __builtin_shuffle(a, b, (places){__VA_ARGS__})
#endif
#define TC_SECONDS(name, type, integer, count, ...)                                                                   \
  typedef integer tc_places_##name##x##count __attribute__((vector_size(count * sizeof(integer))));                   \
  static inline tc_##name##x##count tc_load_second_##name##x##count(const type *p) {                                  \
    const tc_##name##x##count first = tc_load_##name##x##count(p), last = tc_load_##name##x##count(p + count - 1);    \
    return TC_SHUFFLE(first, last, tc_places_##name##x##count, __VA_ARGS__);                                          \
  }                                                                                                                   \
  static inline tc_##name##x##count tc_load_second_part_##name##x##count(const type *p, int n) {                      \
    const int behind = 2 * n - count;                                                                                 \
    const tc_##name##x##count first = tc_load_part_##name##x##count(p, behind > 0 ? count : 2 * n - 1);               \
    tc_##name##x##count last = {0};                                                                                   \
    if (behind > 0) last = tc_load_part_##name##x##count(p + count - 1, behind);                                      \
    return TC_SHUFFLE(first, last, tc_places_##name##x##count, __VA_ARGS__);                                          \
  }
TC_SECONDS(float32, float, int32_t, 2, 0, 3)
TC_SECONDS(float32, float, int32_t, 4, 0, 2, 5, 7)
TC_SECONDS(float64, double, int64_t, 2, 0, 3)
#ifdef __AVX__
TC_SECONDS(float32, float, int32_t, 8, 0, 2, 4, 6, 9, 11, 13, 15)
TC_SECONDS(float64, double, int64_t, 4, 0, 2, 5, 7)
#endif
#ifdef __AVX512F__
TC_SECONDS(float32, float, int32_t, 16, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)
TC_SECONDS(float64, double, int64_t, 8, 0, 2, 4, 6, 9, 11, 13, 15)
#endif

//= tc_int32x* tc_load_int32x* tc_store_int32x* tc_load_part_int32x* tc_store_part_int32x* tc_splat_int32x* < tc_float32x*
// Vectors of words: tc_int32x16 and narrower ones, with tc_load_int32x16, tc_store_int32x16, tc_load_part_int32x16,
// tc_store_part_int32x16 and tc_splat_int32x16.
TC_VECTOR(int32, int32_t, 2) TC_PARTS(int32, int32_t, 2)
TC_VECTOR(int32, int32_t, 4)
#ifdef __AVX512VL__
TC_MASKED(int32, int32_t, 4, unsigned char, __builtin_ia32_loaddqusi128_mask, __builtin_ia32_storedqusi128_mask)
#else
TC_PARTS(int32, int32_t, 4)
#endif
#ifdef __AVX__
TC_VECTOR(int32, int32_t, 8)
#ifdef __AVX512VL__
TC_MASKED(int32, int32_t, 8, unsigned char, __builtin_ia32_loaddqusi256_mask, __builtin_ia32_storedqusi256_mask)
#else
TC_PARTS(int32, int32_t, 8)
#endif
#endif
#ifdef __AVX512F__
TC_VECTOR(int32, int32_t, 16)
TC_MASKED(int32, int32_t, 16, unsigned short, __builtin_ia32_loaddqusi512_mask, __builtin_ia32_storedqusi512_mask)
#endif

//= tc_add_byte_dot_* < tc_int32x* tc_byte_dot_int32
// What adds to each word the products of four unsigned bytes and four signed ones.
#define TC_DOTS(count, ...)                                                                                           \
  static inline tc_int32x##count tc_add_byte_dot_int32x##count(tc_int32x##count sum, tc_int32x##count a,        \
                                                                     tc_int32x##count b) {                            \
    return (tc_int32x##count)__VA_ARGS__;                                                                             \
  }
#if defined(__aarch64__)
static inline tc_int32x4 tc_add_byte_dot_int32x4(tc_int32x4 sum, tc_int32x4 a, tc_int32x4 b) {
  __asm__("usdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
  return sum;
}
#elif defined(__clang__)
TC_DOTS(4, __builtin_ia32_vpdpbusd128(sum, a, b)) TC_DOTS(8, __builtin_ia32_vpdpbusd256(sum, a, b))
TC_DOTS(16, __builtin_ia32_vpdpbusd512(sum, a, b))
#else
TC_DOTS(4, __builtin_ia32_vpdpbusd_v4si(sum, a, b)) TC_DOTS(8, __builtin_ia32_vpdpbusd_v8si(sum, a, b))
TC_DOTS(16, __builtin_ia32_vpdpbusd_v16si(sum, a, b))
#endif
static inline tc_int32x2 tc_add_byte_dot_int32x2(tc_int32x2 sum, tc_int32x2 a, tc_int32x2 b) {
  for (int i = 0; i < 2; i++) sum[i] += tc_byte_dot_int32(a[i], b[i]);
  return sum;
}

//= tc_add_short_dot_* < tc_int32x* tc_short_dot_int32
// What adds to each word the products of two integers of 16 bits each.
#define TC_SHORT_DOTS(count, ...)                                                                                     \
  static inline tc_int32x##count tc_add_short_dot_int32x##count(tc_int32x##count sum, tc_int32x##count a,             \
                                                                tc_int32x##count b) {                                 \
    typedef short shorts __attribute__((vector_size(4 * count)));                                                     \
    typedef unsigned words __attribute__((vector_size(4 * count)));                                                   \
    return (tc_int32x##count)((words)sum + (words)__VA_ARGS__);                                                       \
  }
TC_SHORT_DOTS(4, __builtin_ia32_pmaddwd128((shorts)a, (shorts)b))
#ifdef __AVX2__
TC_SHORT_DOTS(8, __builtin_ia32_pmaddwd256((shorts)a, (shorts)b))
#endif
#if defined(__AVX512BW__) && defined(__clang__)
TC_SHORT_DOTS(16, __builtin_ia32_pmaddwd512((shorts)a, (shorts)b))
#elif defined(__AVX512BW__)
TC_SHORT_DOTS(16, __builtin_ia32_pmaddwd512_mask((shorts)a, (shorts)b, (tc_int32x16){0}, 0xffff))
#endif
static inline tc_int32x2 tc_add_short_dot_int32x2(tc_int32x2 sum, tc_int32x2 a, tc_int32x2 b) {
  for (int i = 0; i < 2; i++) sum[i] = (int32_t)((uint32_t)sum[i] + (uint32_t)tc_short_dot_int32(a[i], b[i]));
  return sum;
}

//= tc_add_pair_dot_* < tc_float32x* tc_int32x* tc_pair_dot_float32
// What adds to each sum the products of two bfloat16 numbers.  Compilers differ in the types of their builtins for it.
#define TC_PAIR_DOTS(count)                                                                                           \
  static inline tc_float32x##count tc_add_pair_dot_float32x##count(tc_float32x##count sum, tc_int32x##count a,        \
                                                                   tc_int32x##count b) {                              \
    __asm__(TC_PAIR_DOT(sum, a, b));                                                                                  \
    return sum;                                                                                                       \
  }
#ifdef __aarch64__
#define TC_PAIR_DOT(sum, a, b) "bfdot %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b)
TC_PAIR_DOTS(4)
#else
#define TC_PAIR_DOT(sum, a, b) "vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b)
TC_PAIR_DOTS(4)
#ifdef __AVX512F__
TC_PAIR_DOTS(8) TC_PAIR_DOTS(16)
#endif
#endif
static inline tc_float32x2 tc_add_pair_dot_float32x2(tc_float32x2 sum, tc_int32x2 a, tc_int32x2 b) {
  for (int i = 0; i < 2; i++) sum[i] += tc_pair_dot_float32(a[i], b[i]);
  return sum;
}

//= tc_load_bfloat16* tc_store_bfloat16* < tc_float32x* tc_bfloat16
// Vectors of float32 from memory in which they are bfloat16, and back.
#define TC_OF_HALVES(half, count, ...)                                                                                   \
  typedef uint16_t tc_##half##x##count __attribute__((vector_size(2 * count)));                                       \
  typedef tc_##half##x##count tc_any_##half##x##count __attribute__((aligned(2), may_alias));                         \
  __VA_ARGS__                                                                                                         \
  static inline tc_float32x##count tc_load_##half##_float32x##count(const tc_##half *p) {                             \
    return tc_widened_##half##x##count(*(const tc_any_##half##x##count *)p);                                          \
  }                                                                                                                   \
  static inline tc_float32x##count tc_load_##half##_part_float32x##count(const tc_##half *p, int n) {                 \
    tc_##half##x##count v = {0};                                                                                      \
    for (int i = 0; i < n; i++) v[i] = p[i];                                                                          \
    return tc_widened_##half##x##count(v);                                                                            \
  }                                                                                                                   \
  static inline void tc_store_##half##_float32x##count(tc_##half *p, tc_float32x##count v) {                          \
    *(tc_any_##half##x##count *)p = tc_narrowed_##half##x##count(v);                                                  \
  }                                                                                                                   \
  static inline void tc_store_##half##_part_float32x##count(tc_##half *p, tc_float32x##count v, int n) {              \
    const tc_##half##x##count narrow = tc_narrowed_##half##x##count(v);                                               \
    for (int i = 0; i < n; i++) p[i] = narrow[i];                                                                     \
  }
#define TC_BFLOATS(count)                                                                                             \
  typedef uint32_t tc_bits_of_bfloat16x##count __attribute__((vector_size(4 * count)));                               \
  static inline tc_float32x##count tc_widened_bfloat16x##count(tc_bfloat16x##count v) {                               \
    return (tc_float32x##count)(__builtin_convertvector(v, tc_bits_of_bfloat16x##count) << 16);                       \
  }                                                                                                                   \
  static inline tc_bfloat16x##count tc_narrowed_bfloat16x##count(tc_float32x##count v) {                              \
    const tc_bits_of_bfloat16x##count bits = (tc_bits_of_bfloat16x##count)v;                                          \
    const tc_bits_of_bfloat16x##count nan = (tc_bits_of_bfloat16x##count)(v != v);                                    \
    const tc_bits_of_bfloat16x##count near = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;     \
    return __builtin_convertvector((near & ~nan) | (quiet & nan), tc_bfloat16x##count);                               \
  }
TC_OF_HALVES(bfloat16, 2, TC_BFLOATS(2)) TC_OF_HALVES(bfloat16, 4, TC_BFLOATS(4))
#ifdef __AVX__
TC_OF_HALVES(bfloat16, 8, TC_BFLOATS(8))
#endif
#ifdef __AVX512F__
TC_OF_HALVES(bfloat16, 16, TC_BFLOATS(16))
#endif

//= tc_load_float16* tc_store_float16* < tc_float32x* tc_float16 tc_load_bfloat16*
// The same for float16, by the instructions that processors have for it.
#define TC_FLOAT16S(count, widen, narrow)                                                                             \
  static inline tc_float32x##count tc_widened_float16x##count(tc_float16x##count v) { return widen; }                 \
  static inline tc_float16x##count tc_narrowed_float16x##count(tc_float32x##count v) { return narrow; }
#define TC_FLOAT16S_APART(count)                                                                                      \
  static inline tc_float32x##count tc_widened_float16x##count(tc_float16x##count v) {                                 \
    tc_float32x##count wide;                                                                                          \
    for (int i = 0; i < count; i++) wide[i] = tc_float32_from_float16(v[i]);                                          \
    return wide;                                                                                                      \
  }                                                                                                                   \
  static inline tc_float16x##count tc_narrowed_float16x##count(tc_float32x##count v) {                                \
    tc_float16x##count narrow;                                                                                        \
    for (int i = 0; i < count; i++) narrow[i] = tc_float16_from_float32(v[i]);                                        \
    return narrow;                                                                                                    \
  }
TC_OF_HALVES(float16, 2, TC_FLOAT16S_APART(2))
TC_OF_HALVES(float16, 4, TC_FLOAT16S_APART(4))
#ifdef __F16C__
typedef short tc_shortsx8 __attribute__((vector_size(16)));
TC_OF_HALVES(float16, 8, TC_FLOAT16S(8, __builtin_ia32_vcvtph2ps256((tc_shortsx8)v),
                                  (tc_float16x8)__builtin_ia32_vcvtps2ph256(v, 0)))
#elif defined(__AVX__)
TC_OF_HALVES(float16, 8, TC_FLOAT16S_APART(8))
#endif
#ifdef __AVX512F__
typedef short tc_shortsx16 __attribute__((vector_size(32)));
TC_OF_HALVES(float16, 16, TC_FLOAT16S(16,
                                   __builtin_ia32_vcvtph2ps512_mask((tc_shortsx16)v, (tc_float32x16){0}, 0xffff, 4),
                                   (tc_float16x16)__builtin_ia32_vcvtps2ph512_mask(v, 0, (tc_shortsx16){0}, 0xffff)))
#endif

//= tc_in_memory
// The array is in memory here: what is used now and then must not take registers from what is used all the time.
#define tc_in_memory(array) __asm__ volatile("" : "+m"(*(char (*)[sizeof array])array))

//= tc_in_register
// The vector is in a register here: a multiply-add must not read it from memory once more.
#if defined(__x86_64__) || defined(__i386__)
#define tc_in_register(vector) __asm__("" : "+x"(vector))
#else
#define tc_in_register(vector) (void)(vector)
#endif

//= tc_read_anew
// What was read before is read again behind this, where it is used: it takes no registers until then.
#define tc_read_anew() __asm__ volatile("" : : : "memory")

//= tc_add_float32x* tc_put_wide_* tc_add_wide_* tc_sum_wide_* < tc_float32x* tc_float64x*
// Totals beside vectors: as many places in memory, of float32 or of float64, which has vectors of `part` lanes: GCC
// converts longer ones lane by lane.  The sum of both is rounded once.
#define TC_PUT_PART(i, part)                                                                                          \
  tc_store_float64x##part(total + part * i, __builtin_convertvector(own.parts[i], tc_float64x##part));
#define TC_ADD_PART(i, part)                                                                                          \
  tc_store_float64x##part(total + part * i, tc_load_float64x##part(total + part * i) +                                \
                                                __builtin_convertvector(own.parts[i], tc_float64x##part));
#define TC_SUM_PART(i, part)                                                                                          \
  own.parts[i] = __builtin_convertvector(                                                                             \
      tc_load_float64x##part(total + part * i) + __builtin_convertvector(own.parts[i], tc_float64x##part),            \
      tc_float32x##part);
#define TC_IN_1(what, part) what(0, part)
#define TC_IN_2(what, part) what(0, part) what(1, part)
#define TC_TOTALS(count, part, parts_of)                                                                              \
  typedef union {                                                                                                     \
    tc_float32x##count whole;                                                                                         \
    tc_float32x##part parts[parts_of];                                                                                \
  } tc_parts_of_##count;                                                                                              \
  static inline void tc_add_float32x##count(float *total, tc_float32x##count v) {                                     \
    tc_store_float32x##count(total, tc_load_float32x##count(total) + v);                                              \
  }                                                                                                                   \
  static inline void tc_put_wide_float32x##count(double *total, tc_float32x##count v) {                               \
    const tc_parts_of_##count own = {v};                                                                              \
    TC_IN_##parts_of(TC_PUT_PART, part)                                                                               \
  }                                                                                                                   \
  static inline void tc_add_wide_float32x##count(double *total, tc_float32x##count v) {                               \
    const tc_parts_of_##count own = {v};                                                                              \
    TC_IN_##parts_of(TC_ADD_PART, part)                                                                               \
  }                                                                                                                   \
  static inline tc_float32x##count tc_sum_wide_float32x##count(const double *total, tc_float32x##count v) {           \
    tc_parts_of_##count own = {v};                                                                                    \
    TC_IN_##parts_of(TC_SUM_PART, part)                                                                               \
    return own.whole;                                                                                                 \
  }
TC_TOTALS(2, 2, 1)
#ifdef __AVX__
TC_TOTALS(4, 4, 1)
#else
TC_TOTALS(4, 2, 2)
#endif
#ifdef __AVX512F__
TC_TOTALS(8, 8, 1)
TC_TOTALS(16, 8, 2)
#elif defined(__AVX__)
TC_TOTALS(8, 4, 2)
#endif

//= tc_lanes_* < tc_float32x* tc_float64x*
// The functions of numerics.h in lanes, NaN and all: the lanes of b where `taken` has ones, else those of a.
#define TC_LANES(name, integer, count)                                                                                \
  typedef integer tc_lanes_##name##x##count __attribute__((vector_size(count * sizeof(integer))));                    \
  TC_EXTREME(fmin, name, count, (a != a) | (b < a))                                                                   \
  TC_EXTREME(fmax, name, count, (a != a) | (b > a))                                                                   \
  TC_EXTREME(min, name, count, (b != b) | (b < a))                                                                    \
  TC_EXTREME(max, name, count, (b != b) | (b > a))
#define TC_EXTREME(function, name, count, taken)                                                                      \
  static inline tc_##name##x##count tc_lanes_##function##_##name##x##count(tc_##name##x##count a,                     \
                                                                           tc_##name##x##count b) {                   \
    const tc_lanes_##name##x##count mask = taken;                                                                     \
    return (tc_##name##x##count)((mask & (tc_lanes_##name##x##count)b) | (~mask & (tc_lanes_##name##x##count)a));     \
  }
TC_LANES(float32, int32_t, 2) TC_LANES(float64, int64_t, 2)
TC_LANES(float32, int32_t, 4)
#ifdef __AVX__
TC_LANES(float32, int32_t, 8) TC_LANES(float64, int64_t, 4)
#endif
#ifdef __AVX512F__
TC_LANES(float32, int32_t, 16) TC_LANES(float64, int64_t, 8)
#endif

//= tc_choose_* < tc_lanes_* tc_float32x* tc_float64x*
// In each lane one of two numbers, as a comparison of two others says; it is false for NaN, but for that of unequal ones.
#define TC_CHOOSE(comparison, name, count, sign)                                                                      \
  static inline tc_##name##x##count tc_choose_##comparison##_##name##x##count(                                        \
      tc_##name##x##count a, tc_##name##x##count b, tc_##name##x##count yes, tc_##name##x##count no) {                \
    const tc_lanes_##name##x##count mask = a sign b;                                                                  \
    return (tc_##name##x##count)((mask & (tc_lanes_##name##x##count)yes) | (~mask & (tc_lanes_##name##x##count)no));  \
  }
#define TC_CHOOSES(name, count)                                                                                       \
  TC_CHOOSE(less, name, count, <) TC_CHOOSE(less_equal, name, count, <=) TC_CHOOSE(equal, name, count, ==)            \
  TC_CHOOSE(greater, name, count, >) TC_CHOOSE(greater_equal, name, count, >=) TC_CHOOSE(not_equal, name, count, !=)
TC_CHOOSES(float32, 2) TC_CHOOSES(float64, 2)
TC_CHOOSES(float32, 4)
#ifdef __AVX__
TC_CHOOSES(float32, 8) TC_CHOOSES(float64, 4)
#endif
#ifdef __AVX512F__
TC_CHOOSES(float32, 16) TC_CHOOSES(float64, 8)
#endif

//= tc_between_* tc_load_between_* < tc_lanes_* tc_float32x* tc_float64x*
// The lanes of `new` from first to last, and the others of `old`; and these lanes from memory, where nothing else is read.
#define TC_NUMBERS_2 0, 1
#define TC_NUMBERS_4 TC_NUMBERS_2, 2, 3
#define TC_NUMBERS_8 TC_NUMBERS_4, 4, 5, 6, 7
#define TC_NUMBERS_16 TC_NUMBERS_8, 8, 9, 10, 11, 12, 13, 14, 15
#define TC_BETWEEN(name, type, integer, count)                                                                        \
  static inline tc_lanes_##name##x##count tc_inside_##name##x##count(int64_t first, int64_t last) {                   \
    const tc_lanes_##name##x##count lane = {TC_NUMBERS_##count};                                                      \
    const integer from = (integer)(first < 0 ? 0 : first), to = (integer)(last < count ? last : count);               \
    return (lane >= from) & (lane <= to);                                                                             \
  }                                                                                                                   \
  static inline tc_##name##x##count tc_between_##name##x##count(tc_##name##x##count old, tc_##name##x##count new,     \
                                                                int64_t first, int64_t last) {                        \
    const tc_lanes_##name##x##count mask = tc_inside_##name##x##count(first, last);                                   \
    return (tc_##name##x##count)((mask & (tc_lanes_##name##x##count)new) | (~mask & (tc_lanes_##name##x##count)old)); \
  }
#define TC_LOAD_BETWEEN(name, type, count)                                                                           \
  static inline tc_##name##x##count tc_load_between_##name##x##count(const type *p, int64_t first, int64_t last) {    \
    tc_##name##x##count v = {0};                                                                                      \
    for (int64_t i = first < 0 ? 0 : first; i <= last && i < count; i++) v[i] = p[i];                                 \
    return v;                                                                                                         \
  }
#define TC_MASKED_BETWEEN(name, type, count, vector, load)                                                            \
  static inline tc_##name##x##count tc_load_between_##name##x##count(const type *p, int64_t first, int64_t last) {    \
    typedef vector tc_mask __attribute__((vector_size(count * sizeof(vector))));                                      \
    return load((const void *)p, (tc_mask)tc_inside_##name##x##count(first, last));                                   \
  }
#define TC_BITS_BETWEEN(name, type, count, mask, load)                                                                \
  static inline tc_##name##x##count tc_load_between_##name##x##count(const type *p, int64_t first, int64_t last) {    \
    const int64_t from = first < 0 ? 0 : first, to = last < count ? last + 1 : count;                                 \
    const mask bits = from < to ? (mask)((1u << to) - (1u << from)) : 0;                                              \
    return load((const void *)p, (tc_##name##x##count){0}, bits);                                                     \
  }
TC_BETWEEN(float32, float, int32_t, 2) TC_LOAD_BETWEEN(float32, float, 2)
TC_BETWEEN(float64, double, int64_t, 2) TC_LOAD_BETWEEN(float64, double, 2)
TC_BETWEEN(float32, float, int32_t, 4)
#ifdef __AVX512VL__
TC_BITS_BETWEEN(float32, float, 4, unsigned char, __builtin_ia32_loadups128_mask)
#elif defined(__AVX__)
TC_MASKED_BETWEEN(float32, float, 4, int, __builtin_ia32_maskloadps)
#else
TC_LOAD_BETWEEN(float32, float, 4)
#endif
#ifdef __AVX__
TC_BETWEEN(float32, float, int32_t, 8) TC_BETWEEN(float64, double, int64_t, 4)
#ifdef __AVX512VL__
TC_BITS_BETWEEN(float32, float, 8, unsigned char, __builtin_ia32_loadups256_mask)
TC_BITS_BETWEEN(float64, double, 4, unsigned char, __builtin_ia32_loadupd256_mask)
#else
TC_MASKED_BETWEEN(float32, float, 8, int, __builtin_ia32_maskloadps256)
TC_MASKED_BETWEEN(float64, double, 4, long long, __builtin_ia32_maskloadpd256)
#endif
#endif
#ifdef __AVX512F__
TC_BETWEEN(float32, float, int32_t, 16) TC_BETWEEN(float64, double, int64_t, 8)
TC_BITS_BETWEEN(float32, float, 16, unsigned short, __builtin_ia32_loadups512_mask)
TC_BITS_BETWEEN(float64, double, 8, unsigned char, __builtin_ia32_loadupd512_mask)
#endif

//= tc_spread_float* tc_lower_float* < tc_float32x* tc_float64x*
// One number in all lanes, and its first lanes in a narrower vector.  The assembly keeps compilers from loading the number
// once and spreading it from there for every width, which takes instructions that the load would do by the way.
#if defined(__AVX512F__)
#define TC_IN_REGISTER(v) __asm__("" : "+v"(v))
#elif defined(__SSE2__)
#define TC_IN_REGISTER(v) __asm__("" : "+x"(v))
#elif defined(__aarch64__)
#define TC_IN_REGISTER(v) __asm__("" : "+w"(v))
#else
#define TC_IN_REGISTER(v) ((void)0)
#endif
#define TC_SPREAD(name, type, count)                                            \
  static inline tc_##name##x##count tc_spread_##name##x##count(type x) {        \
    tc_##name##x##count v = tc_splat_##name##x##count(x);                       \
    TC_IN_REGISTER(v);                                                          \
    return v;                                                                   \
  }
#define TC_LOWER(name, count, part)                                                               \
  static inline tc_##name##x##part tc_lower_##name##x##count##_x##part(tc_##name##x##count v) {   \
    tc_##name##x##part lower;                                                                     \
    __builtin_memcpy(&lower, &v, sizeof lower);                                                   \
    return lower;                                                                                 \
  }
TC_SPREAD(float32, float, 4) TC_LOWER(float32, 4, 2)
#ifdef __AVX__
TC_SPREAD(float32, float, 8) TC_LOWER(float32, 8, 4) TC_LOWER(float32, 8, 2)
TC_SPREAD(float64, double, 4) TC_LOWER(float64, 4, 2)
#endif
#ifdef __AVX512F__
TC_SPREAD(float32, float, 16) TC_LOWER(float32, 16, 8) TC_LOWER(float32, 16, 4) TC_LOWER(float32, 16, 2)
TC_SPREAD(float64, double, 8) TC_LOWER(float64, 8, 4) TC_LOWER(float64, 8, 2)
#endif

//= tc_spread_int32x* tc_lower_int32x* < tc_int32x* tc_spread_float32x4
// The same for words: tc_spread_int32x16 and tc_lower_int32x16_x8.
TC_SPREAD(int32, int32_t, 4) TC_LOWER(int32, 4, 2)
#ifdef __AVX__
TC_SPREAD(int32, int32_t, 8) TC_LOWER(int32, 8, 4) TC_LOWER(int32, 8, 2)
#endif
#ifdef __AVX512F__
TC_SPREAD(int32, int32_t, 16) TC_LOWER(int32, 16, 8) TC_LOWER(int32, 16, 4) TC_LOWER(int32, 16, 2)
#endif

//= TC_TRANSPOSE TC_PART TC_INDEX
// to[c * to_step + r] = from[r * from_step + c] for all r < rows, c < columns.  Squares of vectors, of the width that the
// name says at most, are turned in registers: in each step two rows exchange halves, then quarters, and so on, until bits
// of row and lane have changed places.
#ifdef __clang__
#define TC_SHUFFLE(index, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TC_SHUFFLE(index, a, b, ...) __builtin_shuffle(a, b, (index){__VA_ARGS__})
#endif
#define TC_EXCHANGE_2_1(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 2); \
    b = TC_SHUFFLE(index, a, b, 1, 3); a = t; } while (0)
#define TC_TURN_2(index) \
    TC_EXCHANGE_2_1(index, r0, r1);
#define TC_EACH_2(M, name, V) \
  M(name, V, 0) M(name, V, 1)
#define TC_EXCHANGE_4_2(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 1, 4, 5); \
    b = TC_SHUFFLE(index, a, b, 2, 3, 6, 7); a = t; } while (0)
#define TC_EXCHANGE_4_1(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 4, 2, 6); \
    b = TC_SHUFFLE(index, a, b, 1, 5, 3, 7); a = t; } while (0)
#define TC_TURN_4(index) \
    TC_EXCHANGE_4_2(index, r0, r2); TC_EXCHANGE_4_2(index, r1, r3); \
    TC_EXCHANGE_4_1(index, r0, r1); TC_EXCHANGE_4_1(index, r2, r3);
#define TC_EACH_4(M, name, V) \
  M(name, V, 0) M(name, V, 1) M(name, V, 2) M(name, V, 3)
#define TC_EXCHANGE_8_4(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 1, 2, 3, 8, 9, 10, 11); \
    b = TC_SHUFFLE(index, a, b, 4, 5, 6, 7, 12, 13, 14, 15); a = t; } while (0)
#define TC_EXCHANGE_8_2(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 1, 8, 9, 4, 5, 12, 13); \
    b = TC_SHUFFLE(index, a, b, 2, 3, 10, 11, 6, 7, 14, 15); a = t; } while (0)
#define TC_EXCHANGE_8_1(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 8, 2, 10, 4, 12, 6, 14); \
    b = TC_SHUFFLE(index, a, b, 1, 9, 3, 11, 5, 13, 7, 15); a = t; } while (0)
#define TC_TURN_8(index) \
    TC_EXCHANGE_8_4(index, r0, r4); TC_EXCHANGE_8_4(index, r1, r5); TC_EXCHANGE_8_4(index, r2, \
    r6); TC_EXCHANGE_8_4(index, r3, r7); \
    TC_EXCHANGE_8_2(index, r0, r2); TC_EXCHANGE_8_2(index, r1, r3); TC_EXCHANGE_8_2(index, r4, \
    r6); TC_EXCHANGE_8_2(index, r5, r7); \
    TC_EXCHANGE_8_1(index, r0, r1); TC_EXCHANGE_8_1(index, r2, r3); TC_EXCHANGE_8_1(index, r4, \
    r5); TC_EXCHANGE_8_1(index, r6, r7);
#define TC_EACH_8(M, name, V) \
  M(name, V, 0) M(name, V, 1) M(name, V, 2) M(name, V, 3) M(name, V, 4) M(name, V, 5) M(name, V, 6) M(name, V, 7)
#define TC_EXCHANGE_16_8(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23); \
    b = TC_SHUFFLE(index, a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31); a = t; } while (0)
#define TC_EXCHANGE_16_4(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27); \
    b = TC_SHUFFLE(index, a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31); a = t; } while (0)
#define TC_EXCHANGE_16_2(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29); \
    b = TC_SHUFFLE(index, a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31); a = t; } while (0)
#define TC_EXCHANGE_16_1(index, a, b) do { \
    __typeof__(a) t = TC_SHUFFLE(index, a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30); \
    b = TC_SHUFFLE(index, a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31); a = t; } while (0)
#define TC_TURN_16(index) \
    TC_EXCHANGE_16_8(index, r0, r8); TC_EXCHANGE_16_8(index, r1, r9); TC_EXCHANGE_16_8(index, r2, \
    r10); TC_EXCHANGE_16_8(index, r3, r11); TC_EXCHANGE_16_8(index, r4, r12); TC_EXCHANGE_16_8(index, r5, \
    r13); TC_EXCHANGE_16_8(index, r6, r14); TC_EXCHANGE_16_8(index, r7, r15); \
    TC_EXCHANGE_16_4(index, r0, r4); TC_EXCHANGE_16_4(index, r1, r5); TC_EXCHANGE_16_4(index, r2, \
    r6); TC_EXCHANGE_16_4(index, r3, r7); TC_EXCHANGE_16_4(index, r8, r12); TC_EXCHANGE_16_4(index, r9, \
    r13); TC_EXCHANGE_16_4(index, r10, r14); TC_EXCHANGE_16_4(index, r11, r15); \
    TC_EXCHANGE_16_2(index, r0, r2); TC_EXCHANGE_16_2(index, r1, r3); TC_EXCHANGE_16_2(index, r4, \
    r6); TC_EXCHANGE_16_2(index, r5, r7); TC_EXCHANGE_16_2(index, r8, r10); TC_EXCHANGE_16_2(index, r9, \
    r11); TC_EXCHANGE_16_2(index, r12, r14); TC_EXCHANGE_16_2(index, r13, r15); \
    TC_EXCHANGE_16_1(index, r0, r1); TC_EXCHANGE_16_1(index, r2, r3); TC_EXCHANGE_16_1(index, r4, \
    r5); TC_EXCHANGE_16_1(index, r6, r7); TC_EXCHANGE_16_1(index, r8, r9); TC_EXCHANGE_16_1(index, r10, \
    r11); TC_EXCHANGE_16_1(index, r12, r13); TC_EXCHANGE_16_1(index, r14, r15);
#define TC_EACH_16(M, name, V) \
  M(name, V, 0) M(name, V, 1) M(name, V, 2) M(name, V, 3) M(name, V, 4) M(name, V, 5) M(name, V, 6) M(name, V, \
    7) M(name, V, 8) M(name, V, 9) M(name, V, 10) M(name, V, 11) M(name, V, 12) M(name, V, 13) M(name, V, \
    14) M(name, V, 15)
#define TC_ROW(name, V, i) tc_##name##x##V r##i = tc_load_##name##x##V(from + i * from_step);
#define TC_COLUMN(name, V, i) tc_store_##name##x##V(to + i * to_step, r##i);
#define TC_PLACES(type) const type *restrict from, int64_t from_step, type *restrict to, int64_t to_step
#define TC_INDEX(name, integer, V) typedef integer tc_index_##name##x##V __attribute__((vector_size(V * sizeof(integer))));
// Squares of V rows and V columns; `smaller` turns what is left beside and below them.  Where nothing is, compilers see it
// before they make code of what turns it.
#define TC_TRANSPOSE(name, type, V, smaller)                                                                          \
  static __attribute__((noinline, unused)) void tc_square_##name##x##V(TC_PLACES(type)) {                             \
    TC_EACH_##V(TC_ROW, name, V)                                                                                      \
    TC_TURN_##V(tc_index_##name##x##V)                                                                                \
    TC_EACH_##V(TC_COLUMN, name, V)                                                                                   \
  }                                                                                                                   \
  static inline void tc_transpose_##name##x##V(TC_PLACES(type), int64_t rows, int64_t columns) {                      \
    const int64_t below = rows % V, beside = columns % V, whole = columns - beside;                                   \
    for (int64_t r = V; r <= rows; r += V, from += V * from_step, to += V) {                                          \
      for (int64_t c = 0; c < whole; c += V) tc_square_##name##x##V(from + c, from_step, to + c * to_step, to_step);  \
      if (beside > 0) smaller(from + whole, from_step, to + whole * to_step, to_step, V, beside);                     \
    }                                                                                                                 \
    if (below > 0) smaller(from, from_step, to, to_step, below, columns);                                             \
  }
// Squares of which only some rows or columns are there: a strip along the columns, or fewer columns than rows.
#define TC_PART_ROW(name, V, i) \
  tc_##name##x##V r##i = {0};   \
  if (i < rows) r##i = tc_load_part_##name##x##V(from + i * from_step, columns);
#define TC_PART_COLUMN(name, V, i) \
  if (i < columns) tc_store_part_##name##x##V(to + i * to_step, r##i, rows);
#define TC_PART(name, type, V)                                                                                        \
  static __attribute__((noinline, unused)) void tc_part_##name(TC_PLACES(type), int rows, int columns) {              \
    TC_EACH_##V(TC_PART_ROW, name, V)                                                                                 \
    TC_TURN_##V(tc_index_##name##x##V)                                                                                \
    TC_EACH_##V(TC_PART_COLUMN, name, V)                                                                              \
  }                                                                                                                   \
  static inline void tc_parts_##name(TC_PLACES(type), int64_t rows, int64_t columns) {                                \
    for (int64_t c = 0; c < columns; c += V)                                                                          \
      tc_part_##name(from + c, from_step, to + c * to_step, to_step, (int)rows, columns - c < V ? (int)(columns - c) : V); \
  }

//= tc_transpose_float32x* < tc_float32x16
TC_INDEX(float32, int32_t, 4) TC_PART(float32, float, 4) TC_TRANSPOSE(float32, float, 4, tc_parts_float32)
#ifdef __AVX__
TC_INDEX(float32, int32_t, 8) TC_TRANSPOSE(float32, float, 8, tc_transpose_float32x4)
#endif
#ifdef __AVX512F__
TC_INDEX(float32, int32_t, 16) TC_TRANSPOSE(float32, float, 16, tc_transpose_float32x8)
#endif

//= tc_transpose_int32x* < tc_int32x*
TC_INDEX(int32, int32_t, 4) TC_PART(int32, int32_t, 4) TC_TRANSPOSE(int32, int32_t, 4, tc_parts_int32)
#ifdef __AVX__
TC_INDEX(int32, int32_t, 8) TC_TRANSPOSE(int32, int32_t, 8, tc_transpose_int32x4)
#endif
#ifdef __AVX512F__
TC_INDEX(int32, int32_t, 16) TC_TRANSPOSE(int32, int32_t, 16, tc_transpose_int32x8)
#endif

//= tc_transpose_float64x* < tc_float64x8
TC_INDEX(float64, int64_t, 2) TC_PART(float64, double, 2) TC_TRANSPOSE(float64, double, 2, tc_parts_float64)
#ifdef __AVX__
TC_INDEX(float64, int64_t, 4) TC_TRANSPOSE(float64, double, 4, tc_transpose_float64x2)
#endif
#ifdef __AVX512F__
TC_INDEX(float64, int64_t, 8) TC_TRANSPOSE(float64, double, 8, tc_transpose_float64x4)
#endif

//= tc_stream tc_fill tc_stream_end
// Copies `count` elements of `size` bytes.  Whole lines are written past the caches, which are neither filled with what
// was there before nor with what is written.  Other threads may read it after tc_stream_end in the thread that wrote it.
#ifdef __AVX512F__
typedef long long tc_wide __attribute__((vector_size(64)));
#define TC_STREAM(to, v) __builtin_ia32_movntdq512(to, v)
#elif defined(__AVX__)
typedef long long tc_wide __attribute__((vector_size(32)));
#define TC_STREAM(to, v) __builtin_ia32_movntdq256(to, v)
#elif defined(__SSE2__)
typedef long long tc_wide __attribute__((vector_size(16)));
#define TC_STREAM(to, v) __builtin_ia32_movntdq(to, v)
#else
typedef long long tc_wide __attribute__((vector_size(16)));
#define TC_STREAM(to, v) (*(to) = (v))
#endif
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#undef TC_STREAM
#define TC_STREAM(to, v) __builtin_nontemporal_store(v, to)
#endif
#endif
static inline void tc_stream(void *restrict to, const void *restrict from, int64_t count, int64_t size) {
  typedef tc_wide tc_from __attribute__((aligned(1), may_alias));
  typedef tc_wide tc_to __attribute__((may_alias));
  enum { LINE = 64, WIDTH = sizeof(tc_wide) };
  char *place = to;
  const char *source = from;
  int64_t left = count * size, before = (int64_t)(-(uintptr_t)place % LINE);
  if (left < LINE + before) before = left > 0 ? left : 0;
  if (before > 0) __builtin_memcpy(place, source, (uintptr_t)before);
  for (place += before, source += before, left -= before; left >= LINE; place += LINE, source += LINE, left -= LINE)
    for (int i = 0; i < LINE; i += WIDTH) TC_STREAM((tc_to *)(place + i), *(const tc_from *)(source + i));
  if (left > 0) __builtin_memcpy(place, source, (uintptr_t)left);
}
// Copies the element at `to` to those behind it, which makes `count` of them, past the caches; its bytes divide a line.
static inline void tc_fill(void *to, int64_t count, int64_t size) {
  typedef tc_wide tc_from __attribute__((aligned(1), may_alias));
  typedef tc_wide tc_to __attribute__((may_alias));
  enum { LINE = 64, WIDTH = sizeof(tc_wide) };
  char line[LINE], *place = to, *end = place + count * size;
  for (int64_t i = 0; i < LINE; i += size) __builtin_memcpy(line + i, to, (uintptr_t)size);
  const int whole = (uintptr_t)place % (uintptr_t)size == 0 && end - place >= 2 * LINE;
  char *first = whole ? place + (-(uintptr_t)place % LINE) : end;
  for (; place < first; place += size) __builtin_memcpy(place, line, (uintptr_t)size);
  for (; end - place >= LINE; place += LINE)
    for (int i = 0; i < LINE; i += WIDTH) TC_STREAM((tc_to *)(place + i), *(const tc_from *)(line + i));
  for (; place < end; place += size) __builtin_memcpy(place, line, (uintptr_t)size);
}
static inline void tc_stream_end(void) {
#ifdef __SSE2__
  __builtin_ia32_sfence();
#endif
}
