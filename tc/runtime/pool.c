// The thread pool under all kernels of a process.
//
// One caller at a time owns the pool; whoever finds it owned (another thread, or a nested call) runs its iterations
// itself.  The iterations are dealt out in equal shares, share 0 for the owner, share i + 1 for worker i, who is called
// by a ticket.  Everyone takes pieces from the front of his own share, then from the back of others'.  So a processor
// that is slower than its neighbour delays a call by a piece at most, and yet the same data goes to the same one from
// call to call.  At the end the owner takes back the tickets that no worker has seen, and waits for the other workers.  So
// a worker that wakes late costs nothing, one that could not be started costs only its help, and no lock is ever held
// that a fork could leave behind.

#define _GNU_SOURCE
#include "pool.h"
#include "workspace.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum {
  MAX_WORKERS = 1023,
  CACHE_LINE = 64,
  STACK_BYTES = 8 << 20,
  // To put a thread to sleep and wake it costs 10 to 50 microseconds, most of them on whoever waits for it.  So a thread
  // watches for what it waits for first: this long, which bridges the gap between two calls from Python, and then, letting
  // all others run that want to, as long as what frameworks do between two calls, autograd for one.
  WATCH_NANOSECONDS = 100000,
  YIELD_NANOSECONDS = 1000000,
  // No piece is smaller than this part of a share: what is left to wait for is a few per cent of a call.
  LEAST_PIECE = 16,
  SPINS_PER_CLOCK = 32,
};

enum { NOTHING = 0, OFFERED = 1 };

struct pool;

typedef struct worker {
  _Alignas(CACHE_LINE) atomic_uint ticket;  // OFFERED: the worker is called, unless the owner takes the ticket back
  atomic_uint asleep;
  struct pool *pool;
  uint64_t number;  // of its share
} worker;

// What is left of a share: units from `front` to `back`, in the low and the high half.
typedef struct share {
  _Alignas(CACHE_LINE) _Atomic uint64_t left;
} share;

typedef struct pool {
  atomic_uint owned;
  uint64_t workers;  // started so far; belongs to the owner, as the job does

  const tc_runtime *runtime;
  tc_body *body;
  const void *context;
  int64_t lower;
  uint64_t count;
  uint64_t unit;  // iterations; more than one where 31 bits cannot count them
  uint64_t shares;
  uint32_t least;  // units in a piece

  _Alignas(CACHE_LINE) atomic_uint pending;  // workers that may still be running pieces
  atomic_uint owner_asleep;
  atomic_int owner_processor;  // where it was at the start of its job

  worker worker[MAX_WORKERS];
  share share[MAX_WORKERS + 1];
} pool;

static pool the_pool;

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// ---- floating-point environment: rounding to nearest, subnormals kept, whatever the thread was set to

#if defined(__x86_64__)
typedef unsigned float_state;
static const float_state DEFAULT_FLOAT_STATE = 0x1f80;
static const float_state FLOAT_STATUS_FLAGS = 0x3f;
static float_state get_float_state(void) { return _mm_getcsr(); }
static void set_float_state(float_state state) { _mm_setcsr(state); }
#elif defined(__aarch64__)
typedef uint64_t float_state;
static const float_state DEFAULT_FLOAT_STATE = 0;
static const float_state FLOAT_STATUS_FLAGS = 0;
static float_state get_float_state(void) {
  float_state state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
static void set_float_state(float_state state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
#endif

// ---- sleeping

static void futex(atomic_uint *word, int operation, unsigned value) {
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Returns once *word differs from `value` (or spuriously): watches it for a while, then sleeps.  Whoever changes the
// word must look at *asleep afterwards; both sides use sequentially consistent order, so one of them sees the other.
// On processor `shared`, which the thread that changes the word needs, this one lets others run.
static void wait_while(atomic_uint *word, unsigned value, atomic_uint *asleep, const atomic_int *shared) {
  int64_t begin = nanoseconds(), waited = 0;
  do {
    for (int i = 0; i < SPINS_PER_CLOCK; i++) {
      if (atomic_load_explicit(word, memory_order_acquire) != value) return;
      relax();
    }
    if (waited > WATCH_NANOSECONDS || sched_getcpu() == atomic_load_explicit(shared, memory_order_relaxed)) sched_yield();
    waited = nanoseconds() - begin;
  } while (waited < YIELD_NANOSECONDS);
  atomic_store(asleep, 1);
  if (atomic_load(word) == value) futex(word, FUTEX_WAIT, value);
  atomic_store(asleep, 0);
}

static void wake(atomic_uint *word, atomic_uint *asleep) {
  if (atomic_load(asleep)) futex(word, FUTEX_WAKE, 1);
}

// ---- shares

static uint64_t packed(uint64_t front, uint64_t back) { return back << 32 | front; }

static void deal(pool *self, uint64_t shares) {
  self->shares = shares;
  self->unit = (self->count >> 31) + 1;
  uint64_t units = self->count / self->unit + (self->count % self->unit != 0);
  uint64_t size = units / shares, longer = units % shares, front = 0;
  self->least = (uint32_t)(size < LEAST_PIECE ? 1 : size / LEAST_PIECE);
  for (uint64_t i = 0; i < shares; i++) {
    uint64_t back = front + size + (i < longer);
    atomic_store_explicit(&self->share[i].left, packed(front, back), memory_order_relaxed);
    front = back;
  }
}

// Half of what is left of a share, from its front for whom it was dealt to; false if nothing is left.
static bool take_piece(pool *self, uint64_t number, bool own, uint64_t *begin, uint64_t *end) {
  _Atomic uint64_t *left = &self->share[number].left;
  uint64_t now = atomic_load_explicit(left, memory_order_relaxed), then;
  do {
    uint64_t front = (uint32_t)now, back = now >> 32, size = (back - front + 1) / 2;
    if (front >= back) return false;
    if (size < self->least) size = back - front < self->least ? back - front : self->least;
    *begin = own ? front : back - size;
    *end = *begin + size;
    then = own ? packed(front + size, back) : packed(front, back - size);
  } while (!atomic_compare_exchange_weak_explicit(left, &now, then, memory_order_relaxed, memory_order_relaxed));
  return true;
}

// Runs pieces of the own share and then of others' until all are taken.
static void run_pieces(pool *self, uint64_t number) {
  char *scratch = self->runtime->scratch + (int64_t)number * self->runtime->scratch_bytes;
  uint64_t begin, end;
  for (uint64_t i = 0; i < self->shares; i++) {
    uint64_t from = (number + i) % self->shares;
    while (take_piece(self, from, i == 0, &begin, &end)) {
      uint64_t first = begin * self->unit, room = self->count - first, size = (end - begin) * self->unit;
      uint64_t from_here = (uint64_t)self->lower + first;
      self->body(self->context, scratch, (int64_t)from_here, (int64_t)(from_here + (size < room ? size : room)));
    }
  }
}

// ---- workers

static bool take(worker *self) {
  unsigned offered = OFFERED;
  return atomic_compare_exchange_strong(&self->ticket, &offered, NOTHING);
}

static void *work(void *argument) {
  worker *self = argument;
  pool *home = self->pool;
  set_float_state(DEFAULT_FLOAT_STATE);
  for (;;) {
    if (!take(self)) {
      wait_while(&self->ticket, NOTHING, &self->asleep, &home->owner_processor);
      continue;
    }
    run_pieces(home, self->number);
    if (atomic_fetch_sub(&home->pending, 1) == 1) wake(&home->pending, &home->owner_asleep);
  }
  return NULL;
}

static bool start_worker(pool *self, uint64_t index) {
  worker *started = &self->worker[index];
  started->pool = self;
  started->number = index + 1;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  bool created = pthread_create(&thread, &attributes, work, started) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return created;
}

// ---- the owner

static void parallel_for(const tc_runtime *runtime, tc_body *body, const void *context, int64_t lower, int64_t upper) {
  if (lower >= upper) return;
  pool *self = runtime->pool;
  uint64_t count = (uint64_t)upper - (uint64_t)lower;
  uint64_t shares = (uint64_t)runtime->threads;
  if (shares > count) shares = count;
  if (shares == 1 || atomic_exchange_explicit(&self->owned, 1, memory_order_acquire)) {
    body(context, runtime->scratch, lower, upper);
    return;
  }
  while (self->workers < shares - 1 && start_worker(self, self->workers)) self->workers++;
  self->runtime = runtime;
  self->body = body;
  self->context = context;
  self->lower = lower;
  self->count = count;
  deal(self, shares);

  atomic_store_explicit(&self->owner_processor, sched_getcpu(), memory_order_relaxed);
  uint64_t helpers = self->workers < shares - 1 ? self->workers : shares - 1;
  atomic_store_explicit(&self->pending, (unsigned)helpers, memory_order_relaxed);
  for (uint64_t i = 0; i < helpers; i++) {
    atomic_store(&self->worker[i].ticket, OFFERED);
    wake(&self->worker[i].ticket, &self->worker[i].asleep);
  }
  run_pieces(self, 0);
  for (uint64_t i = 0; i < helpers; i++) {
    if (take(&self->worker[i])) atomic_fetch_sub(&self->pending, 1);
  }
  unsigned pending;
  while ((pending = atomic_load_explicit(&self->pending, memory_order_acquire)) != 0) {
    wait_while(&self->pending, pending, &self->owner_asleep, &self->owner_processor);
  }
  atomic_store_explicit(&self->owned, 0, memory_order_release);
}

int32_t tc_run(const tc_launch *launch) {
  int32_t fault = 0;
  tc_runtime runtime = {.parallel_for = parallel_for, .pool = &the_pool, .threads = launch->threads, .fault = &fault};
  if (runtime.threads < 1) runtime.threads = 1;
  if (runtime.threads > MAX_WORKERS + 1) runtime.threads = MAX_WORKERS + 1;
  workspace *space = NULL;
  int64_t bytes = launch->shared_bytes + runtime.threads * launch->scratch_bytes;
  if (bytes > 0) {
    space = take_workspace((size_t)bytes);
    if (space == NULL) return TC_NO_MEMORY;
    runtime.shared = (char *)(space + 1);
    runtime.scratch = runtime.shared + launch->shared_bytes;
    runtime.scratch_bytes = launch->scratch_bytes;
  }
  float_state before = get_float_state();
  bool foreign = (before & ~FLOAT_STATUS_FLAGS) != DEFAULT_FLOAT_STATE;
  if (foreign) set_float_state(DEFAULT_FLOAT_STATE);
  launch->kernel((void *const *)launch->words, (const tc_scalar *)(launch->words + launch->buffers), &runtime);
  if (foreign) set_float_state(before);
  if (space != NULL) give_back_workspace(space);
  return fault;
}

// ---- programs

static int32_t run_step(const tc_step *step, int64_t threads, const uint64_t *memories) {
  tc_launch *launch = __builtin_alloca(sizeof *launch + (size_t)step->count * sizeof *launch->words);
  if (step->most_threads != 0 && step->most_threads < threads) threads = step->most_threads;
  *launch = (tc_launch){step->kernel, threads, step->shared_bytes, step->scratch_bytes, step->buffers};
  for (int64_t i = 0; i < step->count; i++) {
    tc_word word = step->words[i];
    launch->words[i] = (word.memory < 0 ? 0 : memories[word.memory]) + (uint64_t)word.offset;
  }
  return tc_run(launch);
}

int64_t tc_run_program(const tc_program *program, int64_t threads, uint64_t *memories) {
  workspace *arena = NULL;
  if (program->arena_bytes > 0) {
    arena = take_workspace((size_t)program->arena_bytes);
    if (arena == NULL) return program->steps << 32 | (uint32_t)TC_NO_MEMORY;
    memories[program->arena] = (uint64_t)(uintptr_t)(arena + 1);
  }
  const tc_step *step = (const tc_step *)(program + 1);
  int64_t found = 0;
  for (int64_t i = 0; i < program->steps && found == 0; i++) {
    int32_t fault = run_step(step, threads, memories);
    if (fault != 0) found = i << 32 | (uint32_t)fault;
    step = (const tc_step *)(step->words + step->count);
  }
  if (arena != NULL) give_back_workspace(arena);
  return found;
}

void tc_copy(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  (void)runtime;
  memcpy(buffers[0], buffers[1], (size_t)scalars[0].i);
}

// ---- fork: the child has none of the workers, and no thread of it is inside a parallel call

static void forget_workers(void) {
  for (uint64_t i = 0; i < the_pool.workers; i++) {
    atomic_store(&the_pool.worker[i].ticket, NOTHING);
    atomic_store(&the_pool.worker[i].asleep, 0);
  }
  the_pool.workers = 0;
  atomic_store(&the_pool.pending, 0);
  atomic_store(&the_pool.owner_asleep, 0);
  atomic_store(&the_pool.owned, 0);
}

__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(NULL, NULL, forget_workers); }
