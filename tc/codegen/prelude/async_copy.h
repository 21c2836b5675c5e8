// Copies to shared memory that end by themselves, where the machine has such; what has arrived is seen by all threads
// after the next barrier.
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
template <int pending> static __forceinline__ void tc_arrived() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}
