// Updates of an element of memory that other threads may update at the same time.

//= TC_MEMORY TC_ATOMIC TC_ATOMIC_CALL TC_ATOMIC_EXTREME tc_swap_4 tc_swap_8 < uint32_t uint64_t
// What has its old value becomes something else; these return what it was.
#ifdef __OPENCL_VERSION__
#define TC_MEMORY __global
static inline uint32_t tc_swap_4(TC_MEMORY void *place, uint32_t old, uint32_t wanted) {
  return atomic_cmpxchg((TC_MEMORY uint32_t *)place, old, wanted);
}
#elif defined(__CUDA_ARCH__)
#define TC_MEMORY
static inline uint32_t tc_swap_4(void *place, uint32_t old, uint32_t wanted) { return atomicCAS((uint32_t *)place, old, wanted); }
static inline uint64_t tc_swap_8(void *place, uint64_t old, uint64_t wanted) { return atomicCAS((uint64_t *)place, old, wanted); }
#else
#define TC_MEMORY
static inline uint32_t tc_swap_4(void *place, uint32_t old, uint32_t wanted) {
  __atomic_compare_exchange_n((uint32_t *)place, &old, wanted, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return old;
}
static inline uint64_t tc_swap_8(void *place, uint64_t old, uint64_t wanted) {
  __atomic_compare_exchange_n((uint64_t *)place, &old, wanted, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return old;
}
#endif
// Again, until no other thread comes between.  An element that would stay as it is, is left alone.
#define TC_ATOMIC(name, type, word, swap, ...)                                                    \
  static inline void name(TC_MEMORY type *place, const type own) {                                \
    union { type value; word bits; } seen, term = {.value = own}, wanted = {.value = own};        \
    for (seen.value = *(volatile TC_MEMORY type *)place;;) {                                      \
      __VA_ARGS__;                                                                                \
      if (wanted.bits == seen.bits) return;                                                       \
      const word found = swap(place, seen.bits, wanted.bits);                                     \
      if (found == seen.bits) return;                                                             \
      seen.bits = found;                                                                          \
    }                                                                                             \
  }
// What the language has a function for.
#define TC_ATOMIC_CALL(name, type, word, function)                                                \
  static inline void name(TC_MEMORY type *place, const type own) {                                \
    function((TC_MEMORY word *)place, (word)own);                                                 \
  }
// -0 is less than 0, and what is no number stays what it is: the result has the same bits in any order.
#define TC_ATOMIC_EXTREME(name, type, word, swap, comparison, of_equals, none)                    \
  TC_ATOMIC(name, type, word, swap,                                                               \
            if (seen.value != seen.value || seen.value comparison term.value) return;             \
            if (term.value == seen.value) wanted.bits = term.bits of_equals seen.bits;            \
            else wanted.bits = term.value != term.value ? none : term.bits)

//= tc_atomic_*int32 < TC_ATOMIC TC_ATOMIC_CALL
TC_ATOMIC(tc_atomic_multiply_int32, int32_t, uint32_t, tc_swap_4, wanted.bits = seen.bits * term.bits)
TC_ATOMIC(tc_atomic_multiply_uint32, uint32_t, uint32_t, tc_swap_4, wanted.bits = seen.bits * term.bits)
#ifdef __OPENCL_VERSION__
TC_ATOMIC_CALL(tc_atomic_add_int32, int32_t, int32_t, atomic_add)
TC_ATOMIC_CALL(tc_atomic_add_uint32, uint32_t, uint32_t, atomic_add)
TC_ATOMIC_CALL(tc_atomic_minimum_int32, int32_t, int32_t, atomic_min)
TC_ATOMIC_CALL(tc_atomic_minimum_uint32, uint32_t, uint32_t, atomic_min)
TC_ATOMIC_CALL(tc_atomic_maximum_int32, int32_t, int32_t, atomic_max)
TC_ATOMIC_CALL(tc_atomic_maximum_uint32, uint32_t, uint32_t, atomic_max)
#elif defined(__CUDA_ARCH__)
TC_ATOMIC_CALL(tc_atomic_add_int32, int32_t, uint32_t, atomicAdd)
TC_ATOMIC_CALL(tc_atomic_add_uint32, uint32_t, uint32_t, atomicAdd)
TC_ATOMIC_CALL(tc_atomic_minimum_int32, int32_t, int32_t, atomicMin)
TC_ATOMIC_CALL(tc_atomic_minimum_uint32, uint32_t, uint32_t, atomicMin)
TC_ATOMIC_CALL(tc_atomic_maximum_int32, int32_t, int32_t, atomicMax)
TC_ATOMIC_CALL(tc_atomic_maximum_uint32, uint32_t, uint32_t, atomicMax)
#else
TC_ATOMIC(tc_atomic_add_int32, int32_t, uint32_t, tc_swap_4, wanted.bits = seen.bits + term.bits)
TC_ATOMIC(tc_atomic_add_uint32, uint32_t, uint32_t, tc_swap_4, wanted.bits = seen.bits + term.bits)
TC_ATOMIC(tc_atomic_minimum_int32, int32_t, uint32_t, tc_swap_4, if (!(term.value < seen.value)) return)
TC_ATOMIC(tc_atomic_minimum_uint32, uint32_t, uint32_t, tc_swap_4, if (!(term.value < seen.value)) return)
TC_ATOMIC(tc_atomic_maximum_int32, int32_t, uint32_t, tc_swap_4, if (!(term.value > seen.value)) return)
TC_ATOMIC(tc_atomic_maximum_uint32, uint32_t, uint32_t, tc_swap_4, if (!(term.value > seen.value)) return)
#endif

//= tc_atomic_*int64 < TC_ATOMIC TC_ATOMIC_CALL
TC_ATOMIC(tc_atomic_multiply_int64, int64_t, uint64_t, tc_swap_8, wanted.bits = seen.bits * term.bits)
TC_ATOMIC(tc_atomic_multiply_uint64, uint64_t, uint64_t, tc_swap_8, wanted.bits = seen.bits * term.bits)
#ifdef __CUDA_ARCH__
TC_ATOMIC_CALL(tc_atomic_add_int64, int64_t, uint64_t, atomicAdd)
TC_ATOMIC_CALL(tc_atomic_add_uint64, uint64_t, uint64_t, atomicAdd)
TC_ATOMIC_CALL(tc_atomic_minimum_int64, int64_t, int64_t, atomicMin)
TC_ATOMIC_CALL(tc_atomic_minimum_uint64, uint64_t, uint64_t, atomicMin)
TC_ATOMIC_CALL(tc_atomic_maximum_int64, int64_t, int64_t, atomicMax)
TC_ATOMIC_CALL(tc_atomic_maximum_uint64, uint64_t, uint64_t, atomicMax)
#else
TC_ATOMIC(tc_atomic_add_int64, int64_t, uint64_t, tc_swap_8, wanted.bits = seen.bits + term.bits)
TC_ATOMIC(tc_atomic_add_uint64, uint64_t, uint64_t, tc_swap_8, wanted.bits = seen.bits + term.bits)
TC_ATOMIC(tc_atomic_minimum_int64, int64_t, uint64_t, tc_swap_8, if (!(term.value < seen.value)) return)
TC_ATOMIC(tc_atomic_minimum_uint64, uint64_t, uint64_t, tc_swap_8, if (!(term.value < seen.value)) return)
TC_ATOMIC(tc_atomic_maximum_int64, int64_t, uint64_t, tc_swap_8, if (!(term.value > seen.value)) return)
TC_ATOMIC(tc_atomic_maximum_uint64, uint64_t, uint64_t, tc_swap_8, if (!(term.value > seen.value)) return)
#endif

//= tc_atomic_add_float32 tc_atomic_multiply_float32 < TC_ATOMIC TC_ATOMIC_CALL
#ifdef __CUDA_ARCH__
TC_ATOMIC_CALL(tc_atomic_add_float32, float, float, atomicAdd)
#else
TC_ATOMIC(tc_atomic_add_float32, float, uint32_t, tc_swap_4, wanted.value = seen.value + term.value)
#endif
TC_ATOMIC(tc_atomic_multiply_float32, float, uint32_t, tc_swap_4, wanted.value = seen.value * term.value)

//= tc_atomic_add_float64 tc_atomic_multiply_float64 < TC_ATOMIC TC_ATOMIC_CALL
#ifdef __CUDA_ARCH__
TC_ATOMIC_CALL(tc_atomic_add_float64, double, double, atomicAdd)
#else
TC_ATOMIC(tc_atomic_add_float64, double, uint64_t, tc_swap_8, wanted.value = seen.value + term.value)
#endif
TC_ATOMIC(tc_atomic_multiply_float64, double, uint64_t, tc_swap_8, wanted.value = seen.value * term.value)

//= tc_atomic_m*imum_float32 < TC_ATOMIC_EXTREME TC_ATOMIC
TC_ATOMIC_EXTREME(tc_atomic_minimum_float32, float, uint32_t, tc_swap_4, <, |, 0x7fc00000u)
TC_ATOMIC_EXTREME(tc_atomic_maximum_float32, float, uint32_t, tc_swap_4, >, &, 0x7fc00000u)

//= tc_atomic_m*imum_float64 < TC_ATOMIC_EXTREME TC_ATOMIC
TC_ATOMIC_EXTREME(tc_atomic_minimum_float64, double, uint64_t, tc_swap_8, <, |, 0x7ff8000000000000ull)
TC_ATOMIC_EXTREME(tc_atomic_maximum_float64, double, uint64_t, tc_swap_8, >, &, 0x7ff8000000000000ull)
