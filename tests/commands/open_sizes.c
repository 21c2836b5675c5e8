// Calls exported kernels whose first extents stay open, for sizes that are told by the table.

#include "kernels.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 96, K = 7 };
static float x[MOST][K], y[MOST][K], row[K];

static int wrong(const char *what) {
  printf("wrong: %s\n", what);
  return 1;
}

static int check_differences(int64_t size, int64_t threads) {
  for (int i = 0; i < MOST; i++)
    for (int k = 0; k < K; k++) x[i][k] = (float)((i * i + 3 * k) % 7), y[i][k] = -1;
  void *buffers[] = {x, y};
  tc_scalar scalars[] = {{.f = 2.0f}, {.i = size}};
  if (tc_call(tc_find("kernel_differences_1to96x7"), buffers, scalars, threads)) return wrong("a fault");
  for (int i = 0; i < MOST; i++)
    for (int k = 0; k < K; k++)
      if (y[i][k] != (i < size - 1 ? (x[i + 1][k] - x[i][k]) * 2 : -1)) return wrong("an element of y");
  return 0;
}

static int check_total(int64_t size, int64_t rows, int64_t threads) {
  for (int i = 0; i < MOST; i++)
    for (int k = 0; k < K; k++) x[i][k] = (float)(i % 5);
  for (int k = 0; k < K; k++) row[k] = 1;
  void *buffers[] = {x, y, row};
  tc_scalar scalars[] = {{.i = size}, {.i = rows}};
  if (tc_call(tc_find("kernel_total_1to96x7_1to9x7"), buffers, scalars, threads)) return wrong("a fault");
  for (int k = 0; k < K; k++) {
    float sum = 0;
    for (int i = 0; i < size; i++) sum += x[i][k];
    for (int i = 0; i < rows; i++) sum += y[i][k];
    if (row[k] != sum) return wrong("an element of the total");
  }
  return 0;
}

static int check_table(void) {
  const tc_exported *kernel = tc_find("kernel_differences_1to96x7");
  if (kernel->scalar_count != 2 || strcmp(kernel->scalars[1].name, "x.0") || strcmp(kernel->scalars[1].type, "int64"))
    return wrong("the parameters");
  return kernel->operands[0].shape[0] == MOST && kernel->operands[1].shape[0] == MOST - 1 ? 0 : wrong("the shapes");
}

int main(void) {
  for (int64_t threads = 1; threads <= 2; threads++)
    for (int64_t size = 1; size <= MOST; size += 19)
      if (check_differences(size, threads) || check_total(size, 1 + size % 9, threads)) return 1;
  if (check_differences(MOST, 2) || check_total(MOST, 9, 2) || check_table()) return 1;
  printf("right\n");
  return 0;
}
