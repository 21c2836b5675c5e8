// Files of raw elements, for the program of main.c.

#ifndef TC_FILES_H
#define TC_FILES_H

#include <stdio.h>
#include <stdlib.h>

static inline void stop(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static inline void *allocate(size_t bytes) {
  void *memory = malloc(bytes > 0 ? bytes : 1);
  if (memory == NULL) stop("memory", "there is not enough");
  return memory;
}

// The bytes of a file that has exactly so many.
static inline void *read_file(const char *path, size_t bytes) {
  void *memory = allocate(bytes);
  FILE *file = fopen(path, "rb");
  if (file == NULL) stop(path, "it cannot be read");
  if (fread(memory, 1, bytes, file) != bytes || fgetc(file) != EOF) stop(path, "it has another size");
  fclose(file);
  return memory;
}

static inline void write_file(const char *path, const void *memory, size_t bytes) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(memory, 1, bytes, file) != bytes || fclose(file) != 0) stop(path, "it cannot be written");
}

#endif
