// Calls exported kernels whose extents stay open, for sizes that are told by the table.

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

// Of arrays without gaps, in whose memory nothing behind the last element changes.
static int check_product(int64_t m, int64_t k, int64_t n, int64_t threads) {
  static float a[20 * 30], b[30 * 40], c[20 * 40 + 1];
  for (int64_t i = 0; i < m * k; i++) a[i] = (float)(i % 5);
  for (int64_t i = 0; i < k * n; i++) b[i] = (float)(i % 3);
  for (int64_t i = 0; i <= 20 * 40; i++) c[i] = -1;
  void *buffers[] = {a, b, c};
  tc_scalar scalars[] = {{.i = m}, {.i = k}, {.i = n}};
  if (tc_call(tc_find("kernel_product_1to20x1to30_1to30x1to40"), buffers, scalars, threads)) return wrong("a fault");
  for (int64_t i = 0; i < m * n; i++) {
    float sum = 0;
    for (int64_t r = 0; r < k; r++) sum += a[i / n * k + r] * b[r * n + i % n];
    if (c[i] != sum) return wrong("an element of the product");
  }
  for (int64_t i = m * n; i <= 20 * 40; i++)
    if (c[i] != -1) return wrong("what lies behind the product");
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
  for (int64_t size = 1; size <= 20; size += 3)
    if (check_product(size, 1 + 7 * size % 30, 1 + 11 * size % 40, 2)) return 1;
  if (check_product(20, 30, 40, 1)) return 1;
  if (check_differences(MOST, 2) || check_total(MOST, 9, 2) || check_table()) return 1;
  printf("right\n");
  return 0;
}
