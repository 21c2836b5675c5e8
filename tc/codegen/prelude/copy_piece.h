// Copies as many bytes as one instruction moves; where tensors are not aligned to them, element by element.
template <bool aligned, bool ahead, int bytes, typename element>
static __forceinline__ void tc_copy_piece(element *to, const element *from) {
  if constexpr (aligned) {
    if constexpr (ahead) tc_copy_ahead<bytes>(to, from);
    else if constexpr (bytes == 16) *(uint4 *)to = *(const uint4 *)from;
    else *(uint2 *)to = *(const uint2 *)from;
  } else {
    for (int n = 0; n < bytes / (int)sizeof(element); n += 1) {
      if constexpr (ahead && sizeof(element) >= 4) tc_copy_ahead<sizeof(element)>(to + n, from + n);
      else to[n] = from[n];
    }
  }
}
