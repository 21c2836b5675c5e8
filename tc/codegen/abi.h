typedef union {
  int64_t i;
  uint64_t u;
  double d;
  float f;
} tc_scalar;

typedef struct tc_runtime {
  // Runs body(context, begin, end) over disjoint chunks that cover lower..upper-1; returns when all are done.
  void (*parallel_for)(void *pool, void (*body)(const void *context, int64_t begin, int64_t end), const void *context,
                       int64_t lower, int64_t upper, int64_t threads);
  void *pool;
  int64_t threads;
  int32_t *fault;
} tc_runtime;
