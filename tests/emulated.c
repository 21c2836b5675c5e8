// One launch of a kernel in a process of its own, for an emulator of another processor.
//
//   emulated kernel.so threads shared scratch <launch >result
//
// `shared` and `scratch` are the bytes of memory that the kernel needs beside its buffers.
//
// A launch is a row of 64-bit words and bytes: the number of blocks of memory; size and bytes of each; the number of
// buffers; block and offset of each; the number of scalars; the scalars.  The result is the fault as a 64-bit word and
// the bytes of all blocks.

#include "pool.c"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what) {
  fprintf(stderr, "emulated: %s\n", what);
  exit(2);
}

static void get(void *bytes, size_t size) {
  if (fread(bytes, 1, size, stdin) != size) fail("the launch is too short");
}

static uint64_t get_word(void) {
  uint64_t word;
  get(&word, sizeof word);
  return word;
}

static void put(const void *bytes, size_t size) {
  if (fwrite(bytes, 1, size, stdout) != size) fail("cannot write the result");
}

static void *allocate(size_t size) {
  void *memory = malloc(size ? size : 1);
  if (!memory) fail("out of memory");
  return memory;
}

int main(int count, char **arguments) {
  if (count != 5) fail("needs a kernel, a number of threads, and the sizes of its memory");
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (!library) fail(dlerror());
  tc_entry *kernel = (tc_entry *)dlsym(library, "tc_kernel");
  if (!kernel) fail("the library exports no tc_kernel");

  uint64_t blocks = get_word();
  char **block = allocate(blocks * sizeof *block);
  uint64_t *size = allocate(blocks * sizeof *size);
  for (uint64_t i = 0; i < blocks; i++) {
    size[i] = get_word();
    block[i] = allocate(size[i]);
    get(block[i], size[i]);
  }
  enum { MOST_WORDS = 256 };
  tc_launch *launch = allocate(sizeof *launch + MOST_WORDS * sizeof launch->words[0]);
  launch->kernel = kernel;
  launch->threads = atoll(arguments[2]);
  launch->shared_bytes = atoll(arguments[3]);
  launch->scratch_bytes = atoll(arguments[4]);
  launch->buffers = (int64_t)get_word();
  if (launch->buffers > MOST_WORDS) fail("too many buffers");
  for (int64_t i = 0; i < launch->buffers; i++) {
    char *begin = block[get_word()];
    launch->words[i] = (uint64_t)(begin + get_word());
  }
  uint64_t scalars = get_word();
  if (launch->buffers + scalars > MOST_WORDS) fail("too many scalars");
  get(launch->words + launch->buffers, scalars * sizeof(uint64_t));

  int64_t fault = tc_run(launch);
  put(&fault, sizeof fault);
  for (uint64_t i = 0; i < blocks; i++) put(block[i], size[i]);
  return 0;
}
