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

//= tc_team tc_barrier tc_run_team tc_copy_later tc_arrive tc_exchange
// The blocks of a grid one after the other, the threads of a block as coroutines that take turns at barriers.  Memory
// that they share begins as not-a-number and -1, or as very large numbers.  That and the order of the threads change from
// block to block.  Threads of a warp also take turns where they exchange values, for which other warps do not wait.
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
  uint64_t values[2];
  int64_t count;
  int ready;  // waits for its warp only
} tc_given;
typedef struct tc_team {
  const void *arguments;
  void (*routine)(struct tc_team *team);
  int64_t block[3], thread[3], size[3];
  char *shared;
  ucontext_t caller;
  ucontext_t *contexts;
  tc_copies *copies;
  tc_given *given;
  int *waits;  // for every thread the barrier or the exchange at which it waits, or TC_DONE
  int64_t current;
} tc_team;
static void tc_barrier(tc_team *team, int number) {
  int64_t own = team->current;
  team->waits[own] = number;
  swapcontext(&team->contexts[own], &team->caller);
}
static void tc_exchange(tc_team *team, int number, void *value, size_t bytes, int64_t distance) {
  int64_t own = team->current, other = own ^ distance, count = team->given[own].count++;
  memcpy(&team->given[own].values[count % 2], value, bytes);
  team->given[own].ready = 1;
  tc_barrier(team, number);
  memset(value, 0xff, bytes);
  if (other < team->size[0] * team->size[1] * team->size[2]) memcpy(value, &team->given[other].values[count % 2], bytes);
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
static void tc_enter_thread(unsigned low, unsigned high) {
  tc_team *team = (tc_team *)((uintptr_t)low | (uintptr_t)high << 16 << 16);
  team->routine(team);
  team->waits[team->current] = TC_DONE;
}
static int tc_run_block(tc_team *team, char *stacks, int64_t stack_bytes, int64_t shared_bytes, int64_t order) {
  int64_t count = team->size[0] * team->size[1] * team->size[2];
  uintptr_t address = (uintptr_t)team;
  memset(team->shared, order / 3 % 2 ? 0x7f : 0xff, (size_t)shared_bytes);
  for (int64_t number = 0; number < count; number += 1) {
    team->copies[number].count = 0;
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
    for (int64_t step = 0; step < count; step += 1) {
      int64_t number = tc_in_order(step, count, turn);
      if (!team->given[number].ready) continue;
      team->given[number].ready = 0;
      team->current = number;
      team->thread[0] = number % team->size[0];
      team->thread[1] = number / team->size[0] % team->size[1];
      team->thread[2] = number / team->size[0] / team->size[1];
      swapcontext(&team->caller, &team->contexts[number]);
    }
    int exchanged = 0;
    for (int64_t number = 0; number < count; number += 1) {
      if (team->waits[number] != team->waits[number / TC_WARP * TC_WARP]) return TC_DIVERGED;
      exchanged |= team->given[number].ready;
    }
    if (exchanged) continue;
    for (int64_t number = 0; number < count; number += 1) {
      if (team->waits[number] != team->waits[0]) return TC_DIVERGED;
      team->given[number].ready = 1;
    }
    if (team->waits[0] == TC_DONE) return 0;
  }
}
// 0, or the fault: no memory for the stacks, or threads of a block that wait at different barriers.
static int tc_run_team(const void *arguments, void (*routine)(tc_team *team), const int64_t *grid, const int64_t *size,
                       int64_t shared_bytes, int64_t private_bytes, int64_t order) {
  int64_t count = size[0] * size[1] * size[2], stack_bytes = TC_THREAD_STACK + (private_bytes + 63) / 64 * 64;
  tc_team team = {.arguments = arguments, .routine = routine, .size = {size[0], size[1], size[2]}};
  char *stacks = malloc((size_t)(count * stack_bytes));
  team.shared = aligned_alloc(64, (size_t)((shared_bytes + 64) / 64 * 64));
  team.contexts = malloc((size_t)count * sizeof(ucontext_t));
  team.waits = malloc((size_t)count * sizeof(int));
  team.given = malloc((size_t)count * sizeof(tc_given));
  team.copies = calloc((size_t)count, sizeof(tc_copies));
  int complete = stacks && team.shared && team.contexts && team.waits && team.given && team.copies;
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
  free(team.contexts);
  free(team.waits);
  free(team.given);
  for (int64_t number = 0; team.copies && number < count; number += 1) free(team.copies[number].items);
  free(team.copies);
  return fault;
}
