// What PTX that was translated to C (ptx.py) runs on: the threads of a block take turns, and give way where they wait.

#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { WARP = 32, STACK_BYTES = 1 << 16, MOST_COPIES = 512, MOST_GROUPS = 64 };
enum { RUNNING, AT_BARRIER, AT_EXCHANGE, AT_CHANNEL, DONE };

// A copy that has begun: what it reads is read, and written, when it is waited for.
typedef struct { uint64_t to, from; int bytes; } copy;
typedef struct {
  ucontext_t context;
  uint32_t index[3];
  int state;
  uint32_t members, source, value, received;  // of an exchange
  uint32_t given[2][6];  // what lanes see of each other, in turns
  int turn;
  copy copies[MOST_COPIES];
  int count, groups, ends[MOST_GROUPS];  // the first copies behind those of every group that is not awaited yet
} thread;
typedef void body(const unsigned char *arguments);

static thread *threads, *self;  // of one block
static ucontext_t scheduler;
static char *stacks;
static unsigned char *shared_memory;
static uint32_t block_size[3], grid_size[3], block_index[3], shared_bytes;
static body *running;
static const unsigned char *given;
static char failure[256];

// Memory that kernels may touch, whole allocations.
static struct { uint64_t begin, end; } allowed[8192];
static int allowed_count;

static void allow(uint64_t begin, uint64_t end) {
  allowed[allowed_count].begin = begin;
  allowed[allowed_count++].end = end;
}
static void allow_constants(void);
static void note_write(uint64_t address, int bytes);
static void forget_products(void);
static void forget_channels(void);
static int channels_move(int count);

static void fail(const char *what, uint64_t where) {
  if (!*failure) snprintf(failure, sizeof failure, "%s at %#llx by thread %u %u %u of block %u %u %u", what,
                          (unsigned long long)where, self->index[0], self->index[1], self->index[2], block_index[0],
                          block_index[1], block_index[2]);
}

static void give_way(int state) {
  self->state = state;
  swapcontext(&self->context, &scheduler);
}

// --- memory: addresses in shared memory are counted from its beginning, others are those of this machine

static unsigned char nowhere[64];

static unsigned char *in_shared(uint64_t address, int bytes) {
  address = (uint32_t)address;
  if (address % bytes) fail("misaligned in shared memory", address);
  else if (address + bytes > shared_bytes) fail("outside of shared memory", address);
  else return shared_memory + address;
  return nowhere;
}

static unsigned char *in_global(uint64_t address, int bytes) {
  if (address % bytes) {
    fail("misaligned", address);
    return nowhere;
  }
  for (int n = 0; n < allowed_count; n += 1)
    if (allowed[n].begin <= address && address + bytes <= allowed[n].end) return (unsigned char *)(uintptr_t)address;
  fail("outside of all arrays", address);
  return nowhere;
}

static unsigned char *in_local(uint64_t address, int bytes) {
  (void)bytes;
  return (unsigned char *)(uintptr_t)address;
}

static void begin_copy(uint64_t to, uint64_t from, int bytes) {
  if (self->count == MOST_COPIES) fail("too many copies under way", to);
  else self->copies[self->count++] = (copy){to, from, bytes};
}

static void close_group(void) {
  if (self->groups == MOST_GROUPS) fail("too many groups of copies under way", 0);
  else self->ends[self->groups++] = self->count;
}

static void wait_for_groups(int pending) {
  if (self->groups <= pending) return;
  const int finished = self->groups - pending, end = self->ends[finished - 1];
  for (int n = 0; n < end; n += 1) {
    const copy *own = &self->copies[n];
    memcpy(in_shared(own->to, own->bytes), in_global(own->from, own->bytes), own->bytes);
    note_write(own->to, own->bytes);
  }
  memmove(self->copies, self->copies + end, (self->count - end) * sizeof(copy));
  self->count -= end;
  for (int n = finished; n < self->groups; n += 1) self->ends[n - finished] = self->ends[n] - end;
  self->groups = pending;
}

// --- threads

static uint32_t exchange(uint32_t value, uint32_t distance, uint32_t clamp, uint32_t members) {
  if (clamp != WARP - 1) fail("exchange in a part of a warp", clamp);
  self->value = value;
  self->members = members;
  self->source = (self - threads) % WARP ^ distance;
  give_way(AT_EXCHANGE);
  return self->received;
}

// What this lane has for the others of its warp, all of which come here, and what another one has.
static uint32_t *for_others(void) { return self->given[self->turn]; }
static void meet(void) {
  self->turn ^= 1;
  exchange(0, 0, WARP - 1, ~0u);
}
static const uint32_t *of_lane(int lane) {
  const thread *other = &threads[(self - threads) / WARP * WARP + lane];
  return other->given[self->turn ^ 1];
}

// At every other atomic update, so that some find an element changed.
static void let_others_run(void) {
  static uint32_t state = 1;
  state = state * 1664525 + 1013904223;
  if (state >> 31) give_way(RUNNING);
}

static void thread_main(void) {
  running(given);
  give_way(DONE);
}

// Whether lanes of a warp go on: those that wait at an exchange at which all of its members have come.
static int exchanged(thread *warp, int lanes) {
  uint32_t there = 0, done = 0;
  for (int lane = 0; lane < lanes; lane += 1) there |= (uint32_t)(warp[lane].state == AT_EXCHANGE) << lane;
  for (int lane = 0; lane < lanes; lane += 1)
    if (there >> lane & 1 && !(warp[lane].members & ~there & (~0u >> (WARP - lanes)))) done |= 1u << lane;
  for (int lane = 0; lane < lanes; lane += 1) {
    if (!(done >> lane & 1)) continue;
    self = &warp[lane];
    if (done >> self->source & 1) self->received = warp[self->source].value;
    else fail("exchange with no lane", lane);
  }
  for (int lane = 0; lane < lanes; lane += 1)
    if (done >> lane & 1) warp[lane].state = RUNNING;
  return done != 0;
}

// Whether threads go on, those that let others run first: barriers are passed by all threads that have not ended.
static int advance(int count) {
  int moved = 0, waiting = 0, left = 0;
  for (int begin = 0; begin < count; begin += WARP)
    moved |= exchanged(threads + begin, count - begin < WARP ? count - begin : WARP);
  if (moved) return 1;
  for (int n = 0; n < count; n += 1)
    if (threads[n].state == RUNNING) return 1;
  if (channels_move(count)) return 1;
  for (int n = 0; n < count; n += 1) {
    waiting += threads[n].state == AT_BARRIER;
    left += threads[n].state != DONE;
  }
  if (waiting < left) {
    self = threads;
    fail("threads wait for each other at different places", 0);
    return 0;
  }
  for (int n = 0; n < count; n += 1)
    if (threads[n].state == AT_BARRIER) threads[n].state = RUNNING;
  return left != 0;
}

// By turns, a warp runs as far as it gets without others, or until its lanes exchange something.
static void run_warp(int begin, int lanes, int backwards) {
  do {
    for (int turn = 0; turn < lanes; turn += 1) {
      self = &threads[begin + (backwards ? lanes - 1 - turn : turn)];
      if (self->state == RUNNING) swapcontext(&scheduler, &self->context);
    }
  } while (!backwards && exchanged(threads + begin, lanes));
}

static void run_block(int count, int backwards) {
  for (int n = 0; n < count; n += 1) {
    thread *own = &threads[n];
    own->index[0] = n % block_size[0];
    own->index[1] = n / block_size[0] % block_size[1];
    own->index[2] = n / block_size[0] / block_size[1];
    own->state = RUNNING;
    own->count = own->groups = own->turn = 0;
    getcontext(&own->context);
    own->context.uc_stack.ss_sp = stacks + (size_t)n * STACK_BYTES;
    own->context.uc_stack.ss_size = STACK_BYTES;
    own->context.uc_link = &scheduler;
    makecontext(&own->context, thread_main, 0);
  }
  memset(shared_memory, 0xff, shared_bytes);
  forget_products();
  forget_channels();
  do {
    for (int begin = 0; begin < count; begin += WARP) run_warp(begin, count - begin < WARP ? count - begin : WARP, backwards);
  } while (advance(count));
}

// Runs a kernel; says what went wrong, or nothing.
static const char *run_kernel(body *kernel, const uint32_t *sizes, uint32_t statically, const unsigned char *arguments,
                              const uint64_t *ranges, int range_count) {
  static uint32_t launches;
  *failure = 0;
  memcpy(grid_size, sizes, sizeof grid_size);
  memcpy(block_size, sizes + 3, sizeof block_size);
  shared_bytes = statically + sizes[6];
  const int count = block_size[0] * block_size[1] * block_size[2];
  stacks = malloc((size_t)count * STACK_BYTES);
  threads = malloc(count * sizeof(thread));
  shared_memory = aligned_alloc(64, (shared_bytes + 64) / 64 * 64);
  allowed_count = 0;
  allow_constants();
  for (int n = 0; n < range_count; n += 1) allow(ranges[2 * n], ranges[2 * n + 1]);
  running = kernel;
  given = arguments;
  const int backwards = launches++ % 2;
  const uint64_t blocks = (uint64_t)grid_size[0] * grid_size[1] * grid_size[2];
  for (uint64_t turn = 0; turn < blocks && !*failure; turn += 1) {
    const uint64_t block = backwards ? blocks - 1 - turn : turn;
    block_index[0] = block % grid_size[0];
    block_index[1] = block / grid_size[0] % grid_size[1];
    block_index[2] = block / grid_size[0] / grid_size[1];
    run_block(count, backwards);
  }
  free(stacks);
  free(threads);
  free(shared_memory);
  return failure;
}

// --- instructions that C has no operator for

#define BITS(type, name, from)                              \
  static inline type name(from value) {                     \
    type bits;                                              \
    memcpy(&bits, &value, sizeof bits);                     \
    return bits;                                            \
  }
BITS(float, as_f32, uint32_t)
BITS(double, as_f64, uint64_t)
BITS(uint32_t, bits_f32, float)
BITS(uint64_t, bits_f64, double)

#define ROUNDED(name, mode, type, expression)                                       \
  __attribute__((noinline)) static type name(type a, type b, type c) {              \
    volatile type x = a, y = b, z = c;                                              \
    fesetround(mode);                                                               \
    volatile type found = expression;                                               \
    fesetround(FE_TONEAREST);                                                       \
    (void)x, (void)y, (void)z;                                                      \
    return found;                                                                   \
  }
#define ROUNDED_ALL(suffix, mode)                                                    \
  ROUNDED(add_##suffix##_f32, mode, float, x + y)                                    \
  ROUNDED(add_##suffix##_f64, mode, double, x + y)                                   \
  ROUNDED(mul_##suffix##_f32, mode, float, x * y)                                    \
  ROUNDED(mul_##suffix##_f64, mode, double, x * y)                                   \
  ROUNDED(fma_##suffix##_f32, mode, float, fmaf(x, y, z))                            \
  ROUNDED(fma_##suffix##_f64, mode, double, fma(x, y, z))
ROUNDED_ALL(rz, FE_TOWARDZERO)
ROUNDED_ALL(rm, FE_DOWNWARD)
ROUNDED_ALL(rp, FE_UPWARD)

// The other one where one is no number, unless the instruction asks for NaN.
#define EXTREMES(type, suffix)                                                                        \
  static inline type min_##suffix(type a, type b) { return a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b; } \
  static inline type max_##suffix(type a, type b) { return a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b; } \
  static inline type min_NaN_##suffix(type a, type b) { return a != a || b != b ? NAN : min_##suffix(a, b); }  \
  static inline type max_NaN_##suffix(type a, type b) { return a != a || b != b ? NAN : max_##suffix(a, b); }
EXTREMES(float, f32)
EXTREMES(double, f64)

static inline float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static inline float saturated(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
// An approximation that drops the lower half of a double, as the instruction does.
static inline double upper_half(double x) { return as_f64(bits_f64(x) >> 32 << 32); }

// To integers: what is out of range becomes the nearest that is not, what is no number 0.
#define TO_INTEGER(name, type, low, high) \
  static inline type name(double x) { return x != x ? 0 : x <= low ? (type)low : x >= high ? (type)high : (type)x; }
TO_INTEGER(to_s32, int32_t, -0x1p31, 2147483647.0)
TO_INTEGER(to_u32, uint32_t, 0.0, 4294967295.0)
static inline int64_t to_s64(double x) { return x != x ? 0 : x <= -0x1p63 ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : (int64_t)x; }
static inline uint64_t to_u64(double x) { return x != x || x <= 0 ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x; }

static inline float half_to_f32(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float value = exponent == 31 ? fraction ? NAN : INFINITY
                                     : exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24);
  return bits >> 15 ? -value : value;
}
static inline uint16_t f32_to_half(float value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  const float size = fabsf(value);
  if (value != value) return 0x7fff;
  if (size >= 65520) return sign | 0x7c00;
  if (size < 0x1p-14f) return sign | (uint16_t)rintf(size * 0x1p24f);
  int exponent;
  const float fraction = frexpf(size, &exponent);
  return sign | (uint16_t)(((exponent + 14) << 10) + (int)rintf(fraction * 2048) - 1024);
}
static inline uint16_t f32_to_bfloat(float value) {
  const uint32_t bits = bits_f32(value);
  return value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static inline uint64_t inserted(uint64_t from, uint64_t into, uint32_t position, uint32_t length) {
  const uint64_t mask = (length >= 64 ? ~0ull : (1ull << length) - 1) << position;
  return (into & ~mask) | (from << position & mask);
}
static inline uint32_t permuted(uint64_t a, uint64_t b, uint32_t selector) {
  const uint64_t bytes = (a & 0xffffffff) | b << 32;
  uint32_t found = 0;
  for (int n = 0; n < 4; n += 1) {
    const uint32_t choice = selector >> 4 * n & 15, byte = bytes >> 8 * (choice & 7) & 255;
    found |= (choice & 8 ? byte & 128 ? 255 : 0 : byte) << 8 * n;
  }
  return found;
}

// --- matrices (PTX ISA: ldmatrix, mma)

// Each lane names a row of eight elements, and gets two elements of every matrix: of a row, or of a column.
static void load_matrices(uint32_t *to, uint64_t row, int count, int turned) {
  const int lane = (self - threads) % WARP;
  for_others()[0] = row;
  meet();
  for (int n = 0; n < count; n += 1) {
    uint16_t pair[2];
    for (int half = 0; half < 2; half += 1) {
      const int own = lane / 4, other = 2 * (lane % 4) + half;
      const unsigned char *elements = in_shared(of_lane(8 * n + (turned ? other : own))[0], 16);
      memcpy(&pair[half], elements + 2 * (turned ? own : other), 2);
    }
    to[n] = pair[0] | (uint32_t)pair[1] << 16;
  }
}

static inline float bfloat_to_f32(uint16_t bits) { return as_f32((uint32_t)bits << 16); }

static void meet_with(const uint32_t *left, const uint32_t *right) {
  memcpy(for_others(), left, 4 * sizeof *left);
  memcpy(for_others() + 4, right, 2 * sizeof *right);
  meet();
}

static void multiply_bytes(uint32_t *sums, const uint32_t *left, const uint32_t *right, int left_signed, int right_signed) {
  const int lane = (self - threads) % WARP;
  meet_with(left, right);
  for (int n = 0; n < 4; n += 1) {
    const int row = lane / 4 + n / 2 * 8, column = 2 * (lane % 4) + n % 2;
    for (int k = 0; k < 32; k += 1) {
      const uint8_t a = of_lane(4 * (row % 8) + k % 16 / 4)[row / 8 + k / 16 * 2] >> k % 4 * 8;
      const uint8_t b = of_lane(4 * column + k % 16 / 4)[4 + k / 16] >> k % 4 * 8;
      sums[n] += (left_signed ? (int8_t)a : a) * (right_signed ? (int8_t)b : b);
    }
  }
}

// The nearest number of 11 significant bits, of two the one that is farther from 0 (PTX ISA: cvt.rna.tf32.f32).
static inline uint32_t f32_to_tf32(float x) {
  const uint32_t bits = bits_f32(x);
  return isfinite(x) ? (bits + 0x1000) & ~0x1fffu : bits;
}

// What a register has beyond the 11 bits of a number does not count.
static void multiply_words(float *sums, const uint32_t *left, const uint32_t *right) {
  const int lane = (self - threads) % WARP;
  meet_with(left, right);
  for (int n = 0; n < 4; n += 1) {
    const int row = lane / 4 + n / 2 * 8, column = 2 * (lane % 4) + n % 2;
    float sum = 0;
    for (int k = 7; k >= 0; k -= 1) {
      const uint32_t a = of_lane(4 * (row % 8) + k % 4)[row / 8 + k / 4 * 2], b = of_lane(4 * column + k % 4)[4 + k / 4];
      sum = fma_rz_f32(as_f32(a & ~0x1fffu), as_f32(b & ~0x1fffu), sum);
    }
    sums[n] = add_rz_f32(sums[n], sum, 0);
  }
}

// The order of the terms is not specified, nor how sums are rounded: here the last ones first, towards zero.
static void multiply(float *sums, const uint32_t *left, const uint32_t *right, float (*wide)(uint16_t)) {
  const int lane = (self - threads) % WARP;
  meet_with(left, right);
  for (int n = 0; n < 4; n += 1) {
    const int row = lane / 4 + n / 2 * 8, column = 2 * (lane % 4) + n % 2;
    float sum = 0;
    for (int k = 15; k >= 0; k -= 1) {
      const uint32_t a = of_lane(4 * (row % 8) + k % 8 / 2)[row / 8 + k / 8 * 2];
      const uint32_t b = of_lane(4 * column + k % 8 / 2)[4 + k / 8];
      sum = fma_rz_f32(wide(a >> k % 2 * 16), wide(b >> k % 2 * 16), sum);
    }
    sums[n] = add_rz_f32(sums[n], sum, 0);
  }
}
