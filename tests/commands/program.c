// Calls both kernels of an exported folder, by their names and by the table, and compares with what they mean.

#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>

enum { M = 96, K = 300, N = 200 };
static float a[M][K], b[K][N], c[M][N];

static int wrong(const char *what) {
  printf("wrong: %s\n", what);
  return 1;
}

static int check_product(int64_t threads) {
  for (int m = 0; m < M; m++)
    for (int k = 0; k < K; k++) a[m][k] = (float)((m + 3 * k) % 7 - 3);
  for (int k = 0; k < K; k++)
    for (int n = 0; n < N; n++) b[k][n] = (float)((2 * k + n) % 5 - 2);
  void *buffers[] = {a, b, c};
  if (tc_call(tc_find("kernel_mm_96x300_300x200"), buffers, NULL, threads)) return wrong("a fault");
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      float sum = 0;
      for (int k = 0; k < K; k++) sum += a[m][k] * b[k][n];
      if (c[m][n] != sum) return wrong("an element of C");
    }
  return 0;
}

static int check_gather(void) {
  double x[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, y[3] = {-1, -1, -1}, total = -1;
  int32_t indices[3] = {1, 2, 8};
  void *buffers[] = {x, indices, y, &total};
  tc_scalar scalars[] = {{.d = 2.0}};
  const tc_exported *kernel = tc_find("kernel_pick_9_3_float64_int32");
  if (tc_call(kernel, buffers, scalars, 1)) return wrong("a fault");
  if (y[0] != 2 || y[1] != 4 || y[2] != 16 || total != 22) return wrong("what was picked");
  indices[1] = 9;
  if (tc_call(kernel, buffers, scalars, 1) != 1) return wrong("no fault for an index outside");
  return 0;
}

static int check_table(void) {
  const tc_exported *kernel = tc_find("kernel_mm_96x300_300x200");
  if (tc_kernel_count != 2 || tc_find("nobody") != NULL || kernel->entry != kernel_mm_96x300_300x200)
    return wrong("the table");
  const tc_operand *operand = &kernel->operands[1];
  if (kernel->operand_count != 3 || operand->shape[0] != K || operand->shape[1] != N || operand->bytes != sizeof b ||
      operand->written || !operand->read || !kernel->operands[2].written || kernel->operands[2].read)
    return wrong("an operand");
  if (tc_call(NULL, NULL, NULL, 1) != TC_NOT_CALLED) return wrong("a call of nothing");
  return kernel->seconds == 0.0015 ? 0 : wrong("the time");
}

int main(int count, char **arguments) {
  int64_t threads = count > 1 ? atoi(arguments[1]) : 1;
  if (check_product(threads) || check_product(1) || check_gather() || check_table()) return 1;
  printf("right\n");
  return 0;
}
