typedef union {
  int64_t i;
  uint64_t u;
  double d;
  float f;
} tc_scalar;

typedef struct tc_runtime {
  // Runs body(context, scratch, begin, end) over disjoint pieces of lower..upper-1, each with scratch memory of its own.
  void (*parallel_for)(const struct tc_runtime *runtime,
                       void (*body)(const void *context, char *scratch, int64_t begin, int64_t end),
                       const void *context, int64_t lower, int64_t upper);
  void *pool;
  int64_t threads;
  int32_t *fault;
  char *shared;
  char *scratch;
  int64_t scratch_bytes;
} tc_runtime;
