// Matrix instructions of four warps (PTX ISA: wgmma), which read shared memory through the asynchronous proxy: what
// threads write there is seen behind a fence.  Sums are in their registers when a group of instructions is awaited.

enum { GROUP_LANES = 128, MOST_SUMS = 128, MOST_PRODUCTS = 64, MOST_WRITES = 8192, MOST_BLOCK = 1024 };

typedef struct {
  uint64_t left, right, read;
  int group, turned[2];
} product;
typedef struct {
  int fenced, columns, count, group;
  float sums[MOST_SUMS], *registers[MOST_SUMS];
  product products[MOST_PRODUCTS];
  int writes;
  struct { uint32_t begin, bytes; } written[MOST_WRITES];
  int64_t begun;
} products_of;

static products_of of_threads[MOST_BLOCK];
static struct { int64_t number; uint64_t left, right; } named[MOST_BLOCK / GROUP_LANES][64];
static unsigned char seen_memory[256 << 10];

static products_of *own_products(void) { return &of_threads[self - threads]; }

static void forget_products(void) {
  memset(of_threads, 0, sizeof of_threads);
  memset(named, 0, sizeof named);
  memset(seen_memory, 0xff, sizeof seen_memory);
}

// What this thread writes to shared memory, which others see, but no matrix instruction yet.
static void note_write(uint64_t address, int bytes) {
  products_of *own = own_products();
  if (own->writes == MOST_WRITES) return;  // of kernels that need no fences
  own->written[own->writes].begin = (uint32_t)address;
  own->written[own->writes++].bytes = bytes;
}

static void fence_channels(void);

static void fence_proxy(void) {
  fence_channels();
  products_of *own = own_products();
  if (own->writes == MOST_WRITES) fail("too many writes without a fence", 0);
  for (int n = 0; n < own->writes; n += 1)
    memcpy(seen_memory + own->written[n].begin, shared_memory + own->written[n].begin, own->written[n].bytes);
  own->writes = 0;
}

// The place of an element that a descriptor tells, with the swizzle of 128 bytes: steps lie along memory, or rows do if
// the matrix is turned, in panels of 64.
static uint32_t place_in(uint64_t matrix, int row, int step, int turned) {
  const uint32_t first = (matrix & 0x3fff) << 4, stride = (matrix >> 32 & 0x3fff) << 4, leading = (matrix >> 16 & 0x3fff) << 4;
  const int along = turned ? row : step, across = turned ? step : row;
  const uint32_t place = first + leading * (along / 64) + stride * (across / 8) + 128 * (across % 8) + 2 * (along % 64);
  const uint32_t swizzled = place ^ (place >> 7 & 7) << 4;
  if (matrix >> 62 != 1 || matrix >> 49 & 7) fail("another swizzle than that of 128 bytes", matrix);
  if (swizzled + 2 > shared_bytes) fail("a matrix outside of shared memory", swizzled);
  else return swizzled;
  return 0;
}

static uint16_t element_of(const unsigned char *memory, uint64_t matrix, int row, int step, int turned) {
  uint16_t value;
  memcpy(&value, memory + place_in(matrix, row, step, turned), sizeof value);
  return value;
}

static uint64_t all_of(const unsigned char *memory, uint64_t left, uint64_t right, int columns, const int *turned) {
  uint64_t found = 0;
  for (int row = 0; row < 64 + columns; row += 1)
    for (int step = 0; step < 16; step += 1)
      found = (found ^ element_of(memory, row < 64 ? left : right, row < 64 ? row : row - 64, step, turned[row >= 64])) * 0x9e3779b97f4a7c15u;
  return found;
}

static void fence_registers(void) { own_products()->fenced = 1; }

// All lanes of a group name the same matrices.
static void name_matrices(uint64_t left, uint64_t right) {
  products_of *own = own_products();
  const int64_t number = ++own->begun, group = (self - threads) / GROUP_LANES;
  if (named[group][number % 64].number != number) {
    named[group][number % 64].number = number;
    named[group][number % 64].left = left;
    named[group][number % 64].right = right;
  }
  if (named[group][number % 64].left != left || named[group][number % 64].right != right)
    fail("lanes of a group name different matrices", left);
  meet();
}

static void begin_product(float *const *registers, int columns, uint64_t left, uint64_t right, const int *turned,
                          float (*wide)(uint16_t)) {
  products_of *own = own_products();
  const int lane = (self - threads) % GROUP_LANES;
  name_matrices(left, right);
  if (!own->fenced) fail("a matrix instruction without a fence before it", left);
  if (own->count == MOST_PRODUCTS) fail("too many matrix instructions under way", left);
  if (*failure) return;
  for (int n = 0; n < columns / 2; n += 1) {
    const int row = lane / 32 * 16 + lane % 32 / 4 + n / 2 % 2 * 8, column = n / 4 * 8 + 2 * (lane % 4) + n % 2;
    float sum = 0;
    for (int k = 15; k >= 0; k -= 1)
      sum = fma_rz_f32(wide(element_of(seen_memory, left, row, k, turned[0])),
                       wide(element_of(seen_memory, right, column, k, turned[1])), sum);
    if (own->count && (own->registers[n] != registers[n] || own->columns != columns))
      fail("matrix instructions under way with other registers", left);
    own->sums[n] = add_rz_f32(own->count ? own->sums[n] : *registers[n], sum, 0);
    own->registers[n] = registers[n];
    *registers[n] = NAN;
  }
  own->columns = columns;
  own->products[own->count++] = (product){left, right, all_of(seen_memory, left, right, columns, turned), own->group,
                                               {turned[0], turned[1]}};
}

static void close_products(void) { own_products()->group += 1; }

// What was read must not have changed, nor the registers.
static void wait_for_products(int pending) {
  products_of *own = own_products();
  int left = 0;
  for (int n = 0; n < own->count && !*failure; n += 1) {
    const product *one = &own->products[n];
    if (one->group >= own->group - pending) own->products[left++] = *one;
    else if (one->read != all_of(shared_memory, one->left, one->right, own->columns, one->turned))
      fail("shared memory written while a matrix instruction reads it", one->left);
  }
  const int ended = own->count && !left;
  own->count = left;
  for (int n = 0; ended && n < own->columns / 2; n += 1) {
    if (!isnan(*own->registers[n])) fail("a sum touched while a matrix instruction is under way", n);
    *own->registers[n] = own->sums[n];
  }
  own->fenced = 0;
}
