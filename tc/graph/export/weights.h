// The constants of an exported model: weights.bin, mapped into memory that processes share.
//
// The file begins with 64 bytes that say what it is: the text TCWEIGHT, then numbers of 64 bits, the least byte first:
// which export it belongs to, the bytes of the file, and the number of its tensors.  A table follows with the offset and
// the bytes of each.  Every tensor begins at a multiple of 64.  export.json says their names, types and shapes.

#ifndef TC_WEIGHTS_H
#define TC_WEIGHTS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct tc_weights {
  char *bytes;  // which are not written to
  size_t size;
} tc_weights;

typedef struct tc_weights_head {
  char text[8];
  uint64_t identity, size, tensors;
} tc_weights_head;

enum { TC_NO_FILE = -2, TC_OTHER_FILE = -3 };

static void tc_unmap_weights(tc_weights *weights) { munmap(weights->bytes, weights->size); }

// Returns 0, or why the file is not mapped.
static int tc_map_weights(tc_weights *weights, const char *path, uint64_t identity, uint64_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return TC_NO_FILE;
  struct stat status;
  bool fits = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size == size;
  void *bytes = fits ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  if (!fits) return TC_OTHER_FILE;
  if (bytes == MAP_FAILED) return TC_NO_FILE;
  *weights = (tc_weights){bytes, (size_t)size};
  tc_weights_head head;
  memcpy(&head, bytes, sizeof head);
  if (memcmp(head.text, "TCWEIGHT", sizeof head.text) == 0 && head.identity == identity && head.size == size) return 0;
  tc_unmap_weights(weights);
  return TC_OTHER_FILE;
}

#endif
