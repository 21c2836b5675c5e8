// Calls an exported model: from two threads at a time, one of which brings an arena, and in all ways that are wrong.
//
// It prints what the wrong ones say, and "right" where both threads have found what calls one after the other find.

#include "head/model.h"
#include "other/model.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8, INPUTS = 30, OUTPUTS = 10, CALLS = 200 };

typedef struct caller {
  const head_model *model;
  char *arena;
  float x[ROWS][INPUTS], wanted[ROWS][OUTPUTS];
  bool right;
} caller;

static int call(const caller *given, float *found) {
  return head_run(given->model, given->arena, 2, given->x[0], found);
}

static void *call_often(void *argument) {
  caller *given = argument;
  given->right = true;
  for (int n = 0; n < CALLS; n++) {
    float found[ROWS][OUTPUTS];
    given->right &= call(given, found[0]) == 0 && memcmp(found, given->wanted, sizeof found) == 0;
  }
  return NULL;
}

static void check_threads(const head_model *model) {
  caller callers[2];
  pthread_t threads[2];
  char *arena = aligned_alloc(64, (head_arena_bytes() + 63) / 64 * 64);
  for (int n = 0; n < 2; n++) {
    callers[n].model = model;
    callers[n].arena = n == 0 ? arena : NULL;
    for (int i = 0; i < ROWS * INPUTS; i++) callers[n].x[0][i] = (float)((7 * i + n) % 11 - 5) / 8;
    if (call(&callers[n], callers[n].wanted[0]) != 0) exit(1);
  }
  for (int n = 0; n < 2; n++) pthread_create(&threads[n], NULL, call_often, &callers[n]);
  for (int n = 0; n < 2; n++) pthread_join(threads[n], NULL);
  free(arena);
  puts(callers[0].right && callers[1].right ? "right" : "wrong");
}

// Prints why a file is refused.
static void refuse(const char *path) {
  head_model *none = (head_model *)(uintptr_t)1;
  int error = head_load(path, &none);
  puts(error != 0 && none == NULL ? head_error(error) : "it was loaded");
}

int main(void) {
  head_model *model;
  if (head_load("head/weights.bin", &model) != 0) return 1;
  check_threads(model);
  static float x[ROWS][INPUTS], found[ROWS][OUTPUTS];
  _Alignas(64) static char arena[64];
  puts(head_error(head_run(model, NULL, 1, NULL, found[0])));
  puts(head_error(head_run(NULL, NULL, 1, x[0], found[0])));
  puts(head_error(head_run(model, arena + 4, 1, x[0], found[0])));
  puts(head_error(0));
  puts(head_error(7));
  head_unload(model);
  head_unload(NULL);
  refuse("nowhere");
  refuse("head");
  refuse("cut.bin");
  refuse("other/weights.bin");

  // Another model in the same program.
  other_model *other;
  const int64_t places[2] = {2, 9};
  float picked[2][4];
  if (other_load("other/weights.bin", &other) != 0) return 1;
  puts(other_error(other_run(other, NULL, 1, places, picked[0])));
  other_unload(other);
  return 0;
}
