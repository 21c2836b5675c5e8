//= tc_require_aligned
// Notes a fault unless both addresses are multiples of so many bytes, as one access to all of them needs.
static inline void tc_require_aligned(const void *to, const void *from, uintptr_t bytes, int32_t *faulted, int32_t number) {
  if ((uintptr_t)to % bytes || (uintptr_t)from % bytes) *faulted = number;
}

//= tc_in_order
// Which of so many has this turn: backwards, forwards, or every other one first, as the remainder of the order says.
static int64_t tc_in_order(int64_t turn, int64_t count, int64_t order) {
  if (order % 3 == 0) return count - 1 - turn;
  if (order % 3 == 1) return turn;
  int64_t odd = 2 * turn + 1;
  return odd < count ? odd : 2 * (turn - count / 2);
}

//= tc_team tc_barrier tc_run_team tc_copy_later tc_arrive tc_exchange tc_give tc_given_by
// The blocks of a grid one after the other, the threads of a block as coroutines that take turns at barriers.  Memory
// that they share begins as not-a-number and -1, or as very large numbers.  That and the order of the threads change from
// block to block.  Threads of a warp also take turns where they exchange values: other warps do not wait for that, and a
// warp goes on to the next barrier before another one begins.
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
// A thread's stack has this much room beside its own arrays.
enum { TC_THREAD_STACK = 1 << 16, TC_DIVERGED = -2, TC_TEAM_MEMORY = -1, TC_DONE = -1, TC_WARP = 32 };
// Copies of one thread that have begun; until they arrive, their places hold not-a-number.
typedef struct tc_copies {
  struct {
    char *to;
    const char *from;
    size_t bytes;
    int64_t group;
  } *items;
  int64_t count, room, group;
} tc_copies;
// What a thread gives away: in turns, so that the last value stays until the whole warp has seen it.
typedef struct tc_given {
  uint64_t values[2][3];
  int64_t count;
  int ready;  // waits for its warp only
} tc_given;
// A matrix instruction of four warps that a thread has begun: its sums, which are not there until it ends, and what it
// read, which must stay the same until then.
typedef struct tc_products {
  float sums[128], *upper, *lower;
  int columns, begun, wrong;
  int64_t count, group;
  struct {
    uint64_t left, right, read;
    int turned[2];
    int64_t group;
  } items[64];
} tc_products;
// What slots of a stream are waited for by (PTX ISA: mbarrier): a phase ends when so many have arrived, and all bytes that
// were expected.  Copies do not see those that have begun without a fence.
typedef struct tc_channel {
  int64_t phase, expected, arrived, bytes;
  int seen;
} tc_channel;
enum { TC_FILLED, TC_EMPTIED, TC_SLOTS = 64, TC_AWAITING = -3, TC_DIMENSIONS = 5 };
// A box of a tensor that is being copied (PTX ISA: cp.async.bulk.tensor): its bytes arrive at a slot's channel.
typedef struct tc_box {
  char *to;
  const char *from;
  int64_t slot, size, rank, shape[TC_DIMENSIONS], strides[TC_DIMENSIONS], box[TC_DIMENSIONS], origin[TC_DIMENSIONS];
} tc_box;
// What a thread waits for.
typedef struct tc_awaited {
  tc_channel *channel;
  int parity, retired;
} tc_awaited;
typedef struct tc_team {
  const void *arguments;
  void (*routine)(struct tc_team *team);
  int64_t block[3], thread[3], size[3];
  char *shared, *seen;  // by matrix instructions that read it by themselves
  int64_t shared_bytes;
  tc_products *products;
  ucontext_t caller;
  ucontext_t *contexts;
  tc_copies *copies;
  tc_given *given;
  tc_channel channels[2][TC_SLOTS];
  tc_awaited *awaited;
  tc_box *boxes;  // that have begun, and not ended
  int64_t box_count, box_room, late;
  int *waits;  // for every thread the barrier or the exchange at which it waits, or TC_DONE
  int64_t current;
} tc_team;
static void tc_barrier(tc_team *team, int number) {
  int64_t own = team->current;
  team->waits[own] = number;
  swapcontext(&team->contexts[own], &team->caller);
}
// Gives values to the lanes of the warp, which see them under the number that is returned until they have given twice.
static int64_t tc_give(tc_team *team, int number, const void *values, size_t bytes) {
  int64_t own = team->current, turn = team->given[own].count++ % 2;
  memcpy(team->given[own].values[turn], values, bytes);
  team->given[own].ready = 1;
  tc_barrier(team, number);
  return turn;
}
static const void *tc_given_by(const tc_team *team, int64_t thread, int64_t turn) {
  return team->given[thread].values[turn];
}
static void tc_exchange(tc_team *team, int number, void *value, size_t bytes, int64_t distance) {
  int64_t other = team->current ^ distance, turn = tc_give(team, number, value, bytes);
  memset(value, 0xff, bytes);
  if (other < team->size[0] * team->size[1] * team->size[2]) memcpy(value, tc_given_by(team, other, turn), bytes);
}
static void tc_copy_later(tc_team *team, void *to, const void *from, size_t bytes) {
  tc_copies *own = &team->copies[team->current];
  if (own->count == own->room) {
    own->room = 2 * own->room + 64;
    void *items = realloc(own->items, (size_t)own->room * sizeof *own->items);
    if (items == NULL) abort();
    own->items = items;
  }
  memset(to, 0xff, bytes);
  own->items[own->count].to = to;
  own->items[own->count].from = from;
  own->items[own->count].bytes = bytes;
  own->items[own->count].group = own->group;
  own->count += 1;
}
static void tc_arrive(tc_team *team, int64_t pending) {
  tc_copies *own = &team->copies[team->current];
  int64_t left = 0;
  for (int64_t n = 0; n < own->count; n += 1) {
    if (own->items[n].group <= own->group - pending) memcpy(own->items[n].to, own->items[n].from, own->items[n].bytes);
    else own->items[left++] = own->items[n];
  }
  own->count = left;
  own->group += 1;
}
static void tc_arrived_at(tc_channel *own) {
  if (own->arrived < own->expected || own->bytes) return;
  own->arrived = 0;
  own->phase += 1;
}
static int tc_has_ended(const tc_channel *own, int parity) { return (own->phase & 1) != parity; }
// The bytes of a box, rows of 128 one behind the other and swizzled by what addresses say; zeros outside of the tensor.
static void tc_land(tc_team *team, const tc_box *own) {
  int64_t count = 1, at[TC_DIMENSIONS];
  for (int64_t n = 0; n < own->rank; n += 1) count *= own->box[n];
  for (int64_t number = 0; number < count; number += 1) {
    int64_t left = number, place = own->to - team->shared + number * own->size, inside = 1;
    const char *from = own->from;
    for (int64_t n = own->rank - 1; n >= 0; left /= own->box[n], n -= 1) {
      at[n] = own->origin[n] + left % own->box[n];
      from += at[n] * own->strides[n];
      inside &= 0 <= at[n] && at[n] < own->shape[n];
    }
    place ^= (place >> 7 & 7) << 4;
    if (place < 0 || place + own->size > team->shared_bytes) continue;
    if (inside) memcpy(team->shared + place, from, (size_t)own->size);
    else memset(team->shared + place, 0, (size_t)own->size);
    memcpy(team->seen + place, team->shared + place, (size_t)own->size);
  }
  tc_channel *channel = &team->channels[TC_FILLED][own->slot];
  if (!channel->seen) return;
  channel->bytes -= count * own->size;
  tc_arrived_at(channel);
}
// Whether some threads go on that wait for channels, or would if a copy ended: copies do so as late as can be.
static int tc_go_on(tc_team *team, int64_t count) {
  int found = 0;
  for (int64_t number = 0; number < count; number += 1) {
    const tc_awaited *own = &team->awaited[number];
    if (team->waits[number] != TC_AWAITING || !tc_has_ended(own->channel, own->parity)) continue;
    team->given[number].ready = found = 1;
  }
  if (found || !team->box_count) return found;
  team->box_count -= 1;
  const int64_t chosen = team->late % 2 ? 0 : team->box_count;
  const tc_box landed = team->boxes[chosen];
  memmove(team->boxes + chosen, team->boxes + chosen + 1, (size_t)(team->box_count - chosen) * sizeof landed);
  tc_land(team, &landed);
  return 1;
}
static void tc_enter_thread(unsigned low, unsigned high) {
  tc_team *team = (tc_team *)((uintptr_t)low | (uintptr_t)high << 16 << 16);
  team->routine(team);
  team->waits[team->current] = TC_DONE;
}
static int tc_run_block(tc_team *team, char *stacks, int64_t stack_bytes, int64_t shared_bytes, int64_t order) {
  int64_t count = team->size[0] * team->size[1] * team->size[2];
  uintptr_t address = (uintptr_t)team;
  memset(team->shared, order / 3 % 2 ? 0x7f : 0xff, (size_t)shared_bytes);
  memset(team->seen, 0xff, (size_t)shared_bytes);
  memset(team->channels, 0, sizeof team->channels);
  team->box_count = 0;
  team->late = order;
  for (int64_t number = 0; number < count; number += 1) {
    team->copies[number].count = 0;
    team->products[number].begun = 0;
    team->products[number].count = 0;
    team->products[number].group = 0;
    team->awaited[number].retired = 0;
    team->waits[number] = 0;
    team->given[number].count = 0;
    team->given[number].ready = 1;
    ucontext_t *context = &team->contexts[number];
    getcontext(context);
    context->uc_stack.ss_sp = stacks + number * stack_bytes;
    context->uc_stack.ss_size = (size_t)stack_bytes;
    context->uc_link = &team->caller;
    makecontext(context, (void (*)(void))tc_enter_thread, 2, (unsigned)address, (unsigned)(address >> 16 >> 16));
  }
  for (int64_t turn = order;; turn += 1) {
    int64_t warp = -1;
    for (int64_t step = 0; step < count && warp < 0; step += 1) {
      int64_t number = tc_in_order(step, count, order);
      if (team->given[number].ready) warp = number / TC_WARP;
    }
    for (int64_t step = 0; step < count; step += 1) {
      int64_t number = tc_in_order(step, count, turn);
      if (number / TC_WARP != warp || !team->given[number].ready) continue;
      team->given[number].ready = 0;
      team->current = number;
      team->thread[0] = number % team->size[0];
      team->thread[1] = number / team->size[0] % team->size[1];
      team->thread[2] = number / team->size[0] / team->size[1];
      swapcontext(&team->caller, &team->contexts[number]);
    }
    int ready = 0, left = 0;
    for (int64_t number = 0; number < count; number += 1) {
      const int retired = team->awaited[number].retired;
      if (!retired && number / TC_WARP == warp && team->waits[number] != team->waits[warp * TC_WARP]) return TC_DIVERGED;
      ready |= team->given[number].ready;
      left |= team->waits[number] != TC_DONE;
    }
    if (ready) continue;
    if (!left) return team->box_count ? TC_DIVERGED : 0;
    if (tc_go_on(team, count)) continue;
    for (int64_t number = 0; number < count; number += 1) {
      if (team->awaited[number].retired && team->waits[number] == TC_DONE) continue;
      if (team->waits[number] != team->waits[0] || team->waits[number] == TC_AWAITING) return TC_DIVERGED;
      team->given[number].ready = 1;
    }
  }
}
// 0, or the fault: no memory for the stacks, or threads of a block that wait at different barriers.
static int tc_run_team(const void *arguments, void (*routine)(tc_team *team), const int64_t *grid, const int64_t *size,
                       int64_t shared_bytes, int64_t private_bytes, int64_t order) {
  int64_t count = size[0] * size[1] * size[2], stack_bytes = TC_THREAD_STACK + (private_bytes + 63) / 64 * 64;
  tc_team team = {.arguments = arguments, .routine = routine, .size = {size[0], size[1], size[2]}};
  char *stacks = malloc((size_t)(count * stack_bytes));
  const size_t room = (size_t)((shared_bytes + 1024) / 1024 * 1024);
  team.shared = aligned_alloc(1024, room);
  team.seen = aligned_alloc(1024, room);
  team.shared_bytes = shared_bytes;
  team.products = malloc((size_t)count * sizeof(tc_products));
  team.contexts = malloc((size_t)count * sizeof(ucontext_t));
  team.waits = malloc((size_t)count * sizeof(int));
  team.given = malloc((size_t)count * sizeof(tc_given));
  team.copies = calloc((size_t)count, sizeof(tc_copies));
  team.awaited = calloc((size_t)count, sizeof(tc_awaited));
  int complete = stacks && team.shared && team.seen && team.products && team.contexts && team.waits && team.given && team.copies && team.awaited;
  int fault = complete ? 0 : TC_TEAM_MEMORY;
  int64_t blocks = fault ? 0 : grid[0] * grid[1] * grid[2];
  for (int64_t turn = 0; turn < blocks && fault == 0; turn += 1) {
    int64_t number = tc_in_order(turn, blocks, order);
    team.block[0] = number % grid[0];
    team.block[1] = number / grid[0] % grid[1];
    team.block[2] = number / grid[0] / grid[1];
    fault = tc_run_block(&team, stacks, stack_bytes, shared_bytes, order + turn);
  }
  free(stacks);
  free(team.shared);
  free(team.seen);
  free(team.products);
  free(team.contexts);
  free(team.waits);
  free(team.given);
  free(team.awaited);
  free(team.boxes);
  for (int64_t number = 0; team.copies && number < count; number += 1) free(team.copies[number].items);
  free(team.copies);
  return fault;
}

//= tc_load_matrices < tc_team tc_give tc_given_by
// Each lane gives a row of eight elements of two bytes, and gets two elements of every matrix: neighbours in a row, or in
// a column (PTX ISA: ldmatrix).
static void tc_load_matrices(tc_team *team, int number, uint32_t *to, const void *row, int count, int turned) {
  const int64_t lane = team->current % TC_WARP, first = team->current - lane, turn = tc_give(team, number, &row, sizeof row);
  for (int n = 0; n < count; n += 1) {
    uint16_t pair[2];
    for (int half = 0; half < 2; half += 1) {
      const int64_t own = lane / 4, other = 2 * (lane % 4) + half;
      const char *elements = *(const char *const *)tc_given_by(team, first + 8 * n + (turned ? other : own), turn);
      memcpy(&pair[half], elements + 2 * (turned ? own : other), 2);
    }
    to[n] = pair[0] | (uint32_t)pair[1] << 16;
  }
}

//= tc_sum_of_products
// Of a matrix instruction: the order of the terms is not specified, nor how sums are rounded, here towards zero or to the
// nearest, nor whether subnormal numbers are taken for zeros.  What is drawn follows from the terms.
static float tc_sum_of_products(float *terms, int count) {
  uint64_t state = 0;
  for (int n = 0; n < count; n += 1) {
    const union { float f; uint32_t u; } term = {.f = terms[n]};
    state = (state ^ term.u) * 0x9e3779b97f4a7c15u;
    state ^= state >> 29;
  }
  const int towards_zero = state >> 40 & 1, flushed = state >> 41 & 1;
  float sum = 0;
  for (int left = count; left > 0; left -= 1) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const int chosen = (int)((state >> 33) % (uint64_t)left);
    const float term = terms[chosen];
    terms[chosen] = terms[left - 1];
    const double exact = (double)sum + (flushed && fabsf(term) < 0x1p-126f ? 0 : term);
    union { float f; uint32_t u; } rounded = {.f = (float)exact};
    if (towards_zero && isfinite(rounded.f) && fabs((double)rounded.f) > fabs(exact)) rounded.u -= 1;
    sum = rounded.f;
  }
  return sum;
}

//= tc_multiply < tc_team tc_give tc_given_by tc_sum_of_products
// Adds the product of a 16 x 16 and a 16 x 8 matrix of halves to four sums of each lane (PTX ISA: mma.m16n8k16).
static void tc_multiply(tc_team *team, int number, float *const *sums, const uint32_t *left, const uint32_t *right,
                        float (*wide)(uint16_t)) {
  const uint32_t own[6] = {left[0], left[1], left[2], left[3], right[0], right[1]};
  const int64_t lane = team->current % TC_WARP, first = team->current - lane, turn = tc_give(team, number, own, sizeof own);
  for (int n = 0; n < 4; n += 1) {
    const int64_t row = lane / 4 + n / 2 * 8, column = 2 * (lane % 4) + n % 2;
    float terms[17] = {*sums[n]};
    for (int64_t k = 0; k < 16; k += 1) {
      const uint32_t *of_row = tc_given_by(team, first + 4 * (row % 8) + k % 8 / 2, turn);
      const uint32_t *of_column = tc_given_by(team, first + 4 * column + k % 8 / 2, turn);
      const uint32_t a = of_row[row / 8 + k / 8 * 2], b = of_column[4 + k / 8];
      terms[k + 1] = wide((uint16_t)(a >> k % 2 * 16)) * wide((uint16_t)(b >> k % 2 * 16));
    }
    *sums[n] = tc_sum_of_products(terms, 17);
  }
}

//= tc_multiply_float16 < tc_multiply tc_float32_from_float16
static float tc_wide_float16(uint16_t x) { return tc_float32_from_float16(x); }
static void tc_multiply_float16(tc_team *team, int number, float *c0, float *c1, float *c2, float *c3, const uint32_t *left,
                                const uint32_t *right) {
  tc_multiply(team, number, (float *const[]){c0, c1, c2, c3}, left, right, tc_wide_float16);
}

//= tc_multiply_bfloat16 < tc_multiply tc_float32_from_bfloat16
static float tc_wide_bfloat16(uint16_t x) { return tc_float32_from_bfloat16(x); }
static void tc_multiply_bfloat16(tc_team *team, int number, float *c0, float *c1, float *c2, float *c3, const uint32_t *left,
                                 const uint32_t *right) {
  tc_multiply(team, number, (float *const[]){c0, c1, c2, c3}, left, right, tc_wide_bfloat16);
}

//= tc_bits_of_float32
static inline uint32_t tc_bits_of_float32(float x) {
  const union { float f; uint32_t u; } own = {.f = x};
  return own.u;
}

//= tc_multiply_words < tc_team tc_give tc_given_by tc_sum_of_products
// Adds the product of a 16 x 8 and an 8 x 8 matrix of float32 numbers, rounded to 11 bits (PTX ISA: mma.m16n8k8,
// cvt.rna.tf32.f32).  In three parts, they are sums of two such numbers, and the product of both rests is left out.
static float tc_tf32(float x) {
  union { float f; uint32_t u; } own = {.f = x};
  if (isfinite(x)) own.u = (own.u + 0x1000) & ~0x1fffu;
  return own.f;
}
static void tc_multiply_words(tc_team *team, int number, float *const *sums, const uint32_t *left, const uint32_t *right,
                              int parts) {
  const uint32_t own[6] = {left[0], left[1], left[2], left[3], right[0], right[1]};
  const int64_t lane = team->current % TC_WARP, first = team->current - lane, turn = tc_give(team, number, own, sizeof own);
  for (int part = 3 - parts; part < 3; part += 1) {
    for (int n = 0; n < 4; n += 1) {
      const int64_t row = lane / 4 + n / 2 * 8, column = 2 * (lane % 4) + n % 2;
      float terms[9] = {*sums[n]};
      for (int64_t k = 0; k < 8; k += 1) {
        const uint32_t *of_row = tc_given_by(team, first + 4 * (row % 8) + k % 4, turn);
        const uint32_t *of_column = tc_given_by(team, first + 4 * column + k % 4, turn);
        const union { uint32_t u; float f; } a = {of_row[row / 8 + k / 4 * 2]}, b = {of_column[4 + k / 4]};
        const float x = tc_tf32(a.f), y = tc_tf32(b.f);
        terms[k + 1] = (part == 0 ? tc_tf32(a.f - x) : x) * (part == 1 ? tc_tf32(b.f - y) : y);
      }
      *sums[n] = tc_sum_of_products(terms, 9);
    }
  }
}

//= tc_multiply_tf32 < tc_multiply_words
static void tc_multiply_tf32(tc_team *team, int number, float *c0, float *c1, float *c2, float *c3, const uint32_t *left,
                             const uint32_t *right) {
  tc_multiply_words(team, number, (float *const[]){c0, c1, c2, c3}, left, right, 1);
}

//= tc_multiply_3xtf32 < tc_multiply_words
static void tc_multiply_3xtf32(tc_team *team, int number, float *c0, float *c1, float *c2, float *c3, const uint32_t *left,
                               const uint32_t *right) {
  tc_multiply_words(team, number, (float *const[]){c0, c1, c2, c3}, left, right, 3);
}

//= tc_multiply_bytes < tc_team tc_give tc_given_by
// Adds the product of a 16 x 32 and a 32 x 8 matrix of bytes to four sums of each lane (PTX ISA: mma.m16n8k32).
static void tc_multiply_bytes(tc_team *team, int number, int32_t *const *sums, const uint32_t *left, const uint32_t *right,
                              int left_signed, int right_signed) {
  const uint32_t own[6] = {left[0], left[1], left[2], left[3], right[0], right[1]};
  const int64_t lane = team->current % TC_WARP, first = team->current - lane, turn = tc_give(team, number, own, sizeof own);
  for (int n = 0; n < 4; n += 1) {
    const int64_t row = lane / 4 + n / 2 * 8, column = 2 * (lane % 4) + n % 2;
    for (int64_t k = 0; k < 32; k += 1) {
      const uint32_t *of_row = tc_given_by(team, first + 4 * (row % 8) + k % 16 / 4, turn);
      const uint32_t *of_column = tc_given_by(team, first + 4 * column + k % 16 / 4, turn);
      const uint8_t a = of_row[row / 8 + k / 16 * 2] >> k % 4 * 8, b = of_column[4 + k / 16] >> k % 4 * 8;
      *sums[n] += (left_signed ? (int8_t)a : a) * (right_signed ? (int8_t)b : b);
    }
  }
}

//= tc_multiply_s8_s8 < tc_multiply_bytes
static void tc_multiply_s8_s8(tc_team *team, int number, int32_t *c0, int32_t *c1, int32_t *c2, int32_t *c3,
                              const uint32_t *left, const uint32_t *right) {
  tc_multiply_bytes(team, number, (int32_t *const[]){c0, c1, c2, c3}, left, right, 1, 1);
}

//= tc_multiply_s8_u8 < tc_multiply_bytes
static void tc_multiply_s8_u8(tc_team *team, int number, int32_t *c0, int32_t *c1, int32_t *c2, int32_t *c3,
                              const uint32_t *left, const uint32_t *right) {
  tc_multiply_bytes(team, number, (int32_t *const[]){c0, c1, c2, c3}, left, right, 1, 0);
}

//= tc_multiply_u8_s8 < tc_multiply_bytes
static void tc_multiply_u8_s8(tc_team *team, int number, int32_t *c0, int32_t *c1, int32_t *c2, int32_t *c3,
                              const uint32_t *left, const uint32_t *right) {
  tc_multiply_bytes(team, number, (int32_t *const[]){c0, c1, c2, c3}, left, right, 0, 1);
}

//= tc_multiply_u8_u8 < tc_multiply_bytes
static void tc_multiply_u8_u8(tc_team *team, int number, int32_t *c0, int32_t *c1, int32_t *c2, int32_t *c3,
                              const uint32_t *left, const uint32_t *right) {
  tc_multiply_bytes(team, number, (int32_t *const[]){c0, c1, c2, c3}, left, right, 0, 0);
}

//= tc_swizzled
// Where an element of a matrix lies: pieces of 16 bytes change places in rows of 128, piece p of row r with p ^ r % 8.
static inline int64_t tc_swizzled(int64_t offset, int64_t size) {
  return offset ^ offset / (128 / size) % 8 * (16 / size);
}

//= tc_swizzled_panels < tc_swizzled
// The same of matrices with so many rows of more than 128 bytes, which are cut into panels: one lies behind the other.
static inline int64_t tc_swizzled_panels(int64_t offset, int64_t size, int64_t row, int64_t rows) {
  const int64_t width = 128 / size, column = offset % row;
  return tc_swizzled(column / width * width * rows + offset / row * width + column % width, size);
}

//= tc_fence < tc_team
// What was written to shared memory is seen by matrix instructions that read it by themselves (PTX ISA:
// fence.proxy.async).
static void tc_fence(tc_team *team) { memcpy(team->seen, team->shared, (size_t)team->shared_bytes); }

//= tc_matrix < tc_team
// A matrix in shared memory, with the swizzle of 128 bytes (PTX ISA: Matrix Descriptor Format).
static uint64_t tc_matrix(tc_team *team, const void *first, uint64_t stride, uint64_t leading) {
  const uint64_t place = (uint64_t)((const char *)first - team->shared);
  return (place & 0x3ffff) >> 4 | (leading & 0x3ffff) >> 4 << 16 | (stride & 0x3ffff) >> 4 << 32 | 1ull << 62;
}

//= tc_place_in < tc_team
// Of an element of a matrix, whose steps lie along memory, or its rows if it is turned: pieces change places by what
// addresses say.
static uint64_t tc_place_in(const tc_team *team, uint64_t matrix, int64_t row, int64_t step, int turned) {
  const uint64_t first = (matrix & 0x3fff) << 4, stride = (matrix >> 32 & 0x3fff) << 4;
  const uint64_t leading = turned ? (matrix >> 16 & 0x3fff) << 4 : 0;
  const uint64_t along = (uint64_t)(turned ? row : step), across = (uint64_t)(turned ? step : row);
  const uint64_t place = first + stride * (across / 8) + 128 * (across % 8) + leading * (along / 64) + 2 * (along % 64);
  const uint64_t swizzled = place ^ (place >> 7 & 7) << 4;
  return swizzled + 2 <= (uint64_t)team->shared_bytes ? swizzled : 0;
}

//= tc_read_again < tc_team tc_place_in
static uint64_t tc_read_again(const char *memory, const tc_team *team, uint64_t left, uint64_t right, int columns,
                              const int *turned) {
  uint64_t found = 0;
  for (int64_t row = 0; row < 64 + columns; row += 1)
    for (int64_t step = 0; step < 16; step += 1) {
      uint16_t value;
      memcpy(&value, memory + tc_place_in(team, row < 64 ? left : right, row < 64 ? row : row - 64, step, turned[row >= 64]), 2);
      found = (found ^ value) * 0x9e3779b97f4a7c15u;
    }
  return found;
}

//= tc_begin_products < tc_team
// Behind this, sums belong to the matrix instructions of four warps until they have ended (PTX ISA: wgmma.fence).
static void tc_begin_products(tc_team *team) {
  tc_products *own = &team->products[team->current];
  own->begun = 1;
  if (!own->count) own->wrong = 0;
}

//= tc_commit_products < tc_team
static void tc_commit_products(tc_team *team) { team->products[team->current].group += 1; }

//= tc_drain < tc_team tc_place_in tc_read_again
// Those of all groups but the last so many have ended, if nothing has touched what was read for them.
static void tc_drain(tc_team *team, int64_t pending) {
  tc_products *own = &team->products[team->current];
  int64_t left = 0;
  for (int64_t n = 0; n < own->count; n += 1) {
    if (own->items[n].group < own->group - pending)
      own->wrong |= own->items[n].read != tc_read_again(team->shared, team, own->items[n].left, own->items[n].right,
                                                        own->columns, own->items[n].turned);
    else
      own->items[left++] = own->items[n];
  }
  own->count = left;
}

//= tc_end_products < tc_team tc_drain
// Sums are there if nothing has touched them, nor what was read for them.
static void tc_end_products(tc_team *team) {
  tc_products *own = &team->products[team->current];
  const int64_t count = own->count;
  tc_drain(team, 0);
  own->wrong |= own->count != 0;
  own->count = count;
  for (int pair = 0; own->count && pair < own->columns / 4; pair += 1) {
    own->wrong |= !isnan(own->upper[pair]) || !isnan(own->lower[pair]);
    own->upper[pair] = own->wrong ? NAN : own->sums[2 * pair];
    own->lower[pair] = own->wrong ? NAN : own->sums[2 * pair + 1];
  }
  own->begun = own->count = 0;
}

//= tc_multiply_columns < tc_team tc_give tc_given_by tc_sum_of_products tc_place_in tc_read_again
// Adds the product of a 64 x 16 matrix and one with so many columns to the sums of 128 lanes (PTX ISA: wgmma): of two rows
// eight apart, in pairs of neighbours.  All lanes of a warp name the same matrices.
static void tc_multiply_columns(tc_team *team, int number, int columns, float *upper, float *lower, uint64_t left,
                                uint64_t right, int left_turned, int right_turned, float (*wide)(uint16_t)) {
  const int turned[2] = {left_turned, right_turned};
  tc_products *own = &team->products[team->current];
  const int64_t lane = team->current % 128, first = team->current - team->current % TC_WARP;
  const uint64_t named[2] = {left, right};
  const int64_t turn = tc_give(team, number, named, sizeof named);
  own->wrong |= !own->begun || memcmp(tc_given_by(team, first, turn), named, sizeof named);
  own->wrong |= own->count && (upper != own->upper || lower != own->lower || columns != own->columns);
  own->upper = upper;
  own->lower = lower;
  own->columns = columns;
  for (int pair = 0; pair < columns / 4; pair += 1) {
    for (int half = 0; half < 2; half += 1) {
      float *sum = half ? &lower[pair] : &upper[pair];
      const int64_t row = lane / 32 * 16 + lane % 32 / 4 + 8 * half, column = pair / 2 * 8 + 2 * (lane % 4) + pair % 2;
      float terms[17] = {own->count ? own->sums[2 * pair + half] : *sum};
      for (int64_t step = 0; step < 16; step += 1) {
        uint16_t a, b;
        memcpy(&a, team->seen + tc_place_in(team, left, row, step, left_turned), 2);
        memcpy(&b, team->seen + tc_place_in(team, right, column, step, right_turned), 2);
        terms[step + 1] = wide(a) * wide(b);
      }
      own->sums[2 * pair + half] = tc_sum_of_products(terms, 17);
      *sum = NAN;
    }
  }
  own->items[own->count % 64].left = left;
  own->items[own->count % 64].right = right;
  memcpy(own->items[own->count % 64].turned, turned, sizeof turned);
  own->items[own->count % 64].group = own->group;
  own->items[own->count % 64].read = tc_read_again(team->seen, team, left, right, columns, turned);
  own->count += own->count < 63;
}

//= tc_multiply_columns_f16 < tc_multiply_columns tc_multiply_float16
static void tc_multiply_columns_f16(tc_team *team, int number, int columns, float *upper, float *lower, uint64_t left,
                                    uint64_t right, int left_turned, int right_turned) {
  tc_multiply_columns(team, number, columns, upper, lower, left, right, left_turned, right_turned, tc_wide_float16);
}

//= tc_multiply_columns_bf16 < tc_multiply_columns tc_multiply_bfloat16
static void tc_multiply_columns_bf16(tc_team *team, int number, int columns, float *upper, float *lower, uint64_t left,
                                     uint64_t right, int left_turned, int right_turned) {
  tc_multiply_columns(team, number, columns, upper, lower, left, right, left_turned, right_turned, tc_wide_bfloat16);
}

//= tc_begin_channels < tc_team
// The channels of so many slots, which a thread fills and so many warps leave; ``fenced``: copies see that they have begun.
static void tc_begin_channels(tc_team *team, int slots, int warps, int fenced) {
  for (int n = 0; n < slots; n += 1) {
    team->channels[TC_FILLED][n] = (tc_channel){.expected = 1, .seen = fenced};
    team->channels[TC_EMPTIED][n] = (tc_channel){.expected = warps, .seen = fenced};
  }
}

//= tc_retire < tc_team
// This thread does something else than the other ones from now on.
static void tc_retire(tc_team *team) { team->awaited[team->current].retired = 1; }

//= tc_await < tc_team
// Waits until a phase has ended whose number is even, or odd.
static void tc_await(tc_team *team, int kind, int64_t slot, int64_t parity) {
  team->awaited[team->current].channel = &team->channels[kind][slot];
  team->awaited[team->current].parity = (int)parity;
  while (!tc_has_ended(&team->channels[kind][slot], (int)parity)) tc_barrier(team, TC_AWAITING);
}

//= tc_expect < tc_team
// Arrives, and so many bytes are to follow.
static void tc_expect(tc_team *team, int64_t slot, int64_t bytes) {
  team->channels[TC_FILLED][slot].bytes += bytes;
  team->channels[TC_FILLED][slot].arrived += 1;
  tc_arrived_at(&team->channels[TC_FILLED][slot]);
}

//= tc_leave < tc_team
// One lane of a warp arrives.
static void tc_leave(tc_team *team, int64_t slot) {
  if (team->thread[0] || team->thread[1]) return;
  team->channels[TC_EMPTIED][slot].arrived += 1;
  tc_arrived_at(&team->channels[TC_EMPTIED][slot]);
}

//= tc_copy_box < tc_team
// Begins to copy a box of a tensor, of so many elements along each dimension from ``origin`` on.  Until it ends, which it
// does at once in some blocks, its place holds not-a-number.
static void tc_copy_box(tc_team *team, int64_t slot, void *to, const void *from, int64_t size, int64_t rank,
                        const int64_t *shape, const int64_t *strides, const int64_t *box, const int64_t *origin) {
  tc_box own = {.to = to, .from = from, .slot = slot, .size = size, .rank = rank};
  int64_t bytes = size;
  for (int64_t n = 0; n < rank; n += 1) {
    own.shape[n] = shape[n];
    own.strides[n] = strides[n] * size;
    own.box[n] = box[n];
    own.origin[n] = origin[n];
    bytes *= box[n];
  }
  if (team->late % 3 == 0) {
    tc_land(team, &own);
    return;
  }
  if ((char *)to + bytes <= team->shared + team->shared_bytes) memset(to, 0xff, (size_t)bytes);
  if (team->box_count == team->box_room) {
    team->box_room = 2 * team->box_room + 64;
    void *boxes = realloc(team->boxes, (size_t)team->box_room * sizeof own);
    if (boxes == NULL) abort();
    team->boxes = boxes;
  }
  team->boxes[team->box_count++] = own;
}
