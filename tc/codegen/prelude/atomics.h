// Updates of an element of memory that other threads may update at the same time.

//= TC_MEMORY TC_UPDATE TC_NATIVE TC_INTEGERS TC_EXTREME TC_FLOATING
// What has its old value becomes something else; tc_swap returns what it was.
#ifdef __OPENCL_VERSION__
#define TC_MEMORY __global
static inline uint32_t tc_swap_4(TC_MEMORY void *place, uint32_t old, uint32_t wanted) {
  return atomic_cmpxchg((TC_MEMORY uint32_t *)place, old, wanted);
}
#else
#define TC_MEMORY
#ifdef __CUDA_ARCH__
static inline uint32_t tc_swap_4(void *place, uint32_t old, uint32_t wanted) { return atomicCAS((uint32_t *)place, old, wanted); }
static inline uint64_t tc_swap_8(void *place, uint64_t old, uint64_t wanted) { return atomicCAS((uint64_t *)place, old, wanted); }
#else
#define TC_SWAP(bytes, word)                                                                                   \
  static inline word tc_swap_##bytes(void *place, word old, word wanted) {                                     \
    __atomic_compare_exchange_n((word *)place, &old, wanted, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);           \
    return old;                                                                                                \
  }
TC_SWAP(4, uint32_t)
TC_SWAP(8, uint64_t)
#endif
#endif
// Until nobody comes between.  An element that would stay as it is, is left alone.
#define TC_UPDATE(name, type, word, bytes, ...)                                                                \
  static inline void tc_atomic_##name(TC_MEMORY type *place, const type own) {                                 \
    union { type value; word bits; } seen, term = {.value = own}, wanted = {.value = own};                     \
    for (seen.value = *(volatile TC_MEMORY type *)place;;) {                                                   \
      __VA_ARGS__;                                                                                             \
      if (wanted.bits == seen.bits) return;                                                                    \
      const word found = tc_swap_##bytes(place, seen.bits, wanted.bits);                                       \
      if (found == seen.bits) return;                                                                          \
      seen.bits = found;                                                                                       \
    }                                                                                                          \
  }
// Where the language has a function for it.
#define TC_NATIVE(name, type, word, function)                                                                  \
  static inline void tc_atomic_##name(TC_MEMORY type *place, const type own) {                                 \
    function((TC_MEMORY word *)place, (word)own);                                                              \
  }
#define TC_EXTREME(name, type, word, bytes, comparison)                                                        \
  TC_UPDATE(name, type, word, bytes, if (!(term.value comparison seen.value)) return)
// -0 is less than 0, and what is no number stays what it is: the result has the same bits in any order.
#define TC_FLOATING(name, type, word, bytes, comparison, of_equals, none)                                      \
  TC_UPDATE(name, type, word, bytes,                                                                           \
            if (seen.value != seen.value || seen.value comparison term.value) return;                          \
            if (term.value == seen.value) wanted.bits = term.bits of_equals seen.bits;                         \
            else wanted.bits = term.value != term.value ? none : term.bits)

//= tc_atomic_*int32
TC_UPDATE(multiply_int32, int32_t, uint32_t, 4, wanted.bits = seen.bits * term.bits)
TC_UPDATE(multiply_uint32, uint32_t, uint32_t, 4, wanted.bits = seen.bits * term.bits)
#ifdef __OPENCL_VERSION__
TC_NATIVE(add_int32, int32_t, int32_t, atomic_add)
TC_NATIVE(add_uint32, uint32_t, uint32_t, atomic_add)
TC_NATIVE(minimum_int32, int32_t, int32_t, atomic_min)
TC_NATIVE(minimum_uint32, uint32_t, uint32_t, atomic_min)
TC_NATIVE(maximum_int32, int32_t, int32_t, atomic_max)
TC_NATIVE(maximum_uint32, uint32_t, uint32_t, atomic_max)
#elif defined(__CUDA_ARCH__)
TC_NATIVE(add_int32, int32_t, int32_t, atomicAdd)
TC_NATIVE(add_uint32, uint32_t, uint32_t, atomicAdd)
TC_NATIVE(minimum_int32, int32_t, int32_t, atomicMin)
TC_NATIVE(minimum_uint32, uint32_t, uint32_t, atomicMin)
TC_NATIVE(maximum_int32, int32_t, int32_t, atomicMax)
TC_NATIVE(maximum_uint32, uint32_t, uint32_t, atomicMax)
#else
TC_UPDATE(add_int32, int32_t, uint32_t, 4, wanted.bits = seen.bits + term.bits)
TC_UPDATE(add_uint32, uint32_t, uint32_t, 4, wanted.bits = seen.bits + term.bits)
TC_EXTREME(minimum_int32, int32_t, uint32_t, 4, <)
TC_EXTREME(minimum_uint32, uint32_t, uint32_t, 4, <)
TC_EXTREME(maximum_int32, int32_t, uint32_t, 4, >)
TC_EXTREME(maximum_uint32, uint32_t, uint32_t, 4, >)
#endif

//= tc_atomic_*int64
TC_UPDATE(multiply_int64, int64_t, uint64_t, 8, wanted.bits = seen.bits * term.bits)
TC_UPDATE(multiply_uint64, uint64_t, uint64_t, 8, wanted.bits = seen.bits * term.bits)
#ifdef __CUDA_ARCH__
TC_NATIVE(add_int64, int64_t, uint64_t, atomicAdd)
TC_NATIVE(add_uint64, uint64_t, uint64_t, atomicAdd)
TC_NATIVE(minimum_int64, int64_t, int64_t, atomicMin)
TC_NATIVE(minimum_uint64, uint64_t, uint64_t, atomicMin)
TC_NATIVE(maximum_int64, int64_t, int64_t, atomicMax)
TC_NATIVE(maximum_uint64, uint64_t, uint64_t, atomicMax)
#else
TC_UPDATE(add_int64, int64_t, uint64_t, 8, wanted.bits = seen.bits + term.bits)
TC_UPDATE(add_uint64, uint64_t, uint64_t, 8, wanted.bits = seen.bits + term.bits)
TC_EXTREME(minimum_int64, int64_t, uint64_t, 8, <)
TC_EXTREME(minimum_uint64, uint64_t, uint64_t, 8, <)
TC_EXTREME(maximum_int64, int64_t, uint64_t, 8, >)
TC_EXTREME(maximum_uint64, uint64_t, uint64_t, 8, >)
#endif

//= tc_atomic_m*_float32
TC_FLOATING(minimum_float32, float, uint32_t, 4, <, |, 0x7fc00000u)
TC_FLOATING(maximum_float32, float, uint32_t, 4, >, &, 0x7fc00000u)

//= tc_atomic_m*_float64
TC_FLOATING(minimum_float64, double, uint64_t, 8, <, |, 0x7ff8000000000000ull)
TC_FLOATING(maximum_float64, double, uint64_t, 8, >, &, 0x7ff8000000000000ull)
