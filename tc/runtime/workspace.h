// Workspaces: the memory that a call needs beyond its arrays, kept between calls.
//
// Fresh memory costs a page fault wherever it is touched first, so a call takes over the workspace that an earlier call
// of any kernel left, if it is large enough.  There are never more workspaces than calls ran at one time, at most KEPT
// of them stay, and what stays of a large one the system may take back as soon as it runs short of memory.

#ifndef TC_WORKSPACE_H
#define TC_WORKSPACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
  KEPT = 8,
  HUGE_PAGE = 2 << 20,
  // Pages of a small workspace stay small, so that it takes little more than was asked for; and to tell the system that
  // it may take one back costs about 10 microseconds.
  LARGE = 16 << 20,
};

typedef struct workspace {
  _Alignas(64) size_t size;  // of the whole mapping; the workspace itself follows
} workspace;

// What another thread of the parent was using at the time of a fork is lost to the child; the rest is its own copy.
static _Atomic(workspace *) kept_workspaces[KEPT];

static void unmap_workspace(workspace *space) { munmap(space, space->size); }

static char *map_pages(size_t size) {
  char *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return found == MAP_FAILED ? NULL : found;
}

// Whole huge pages: a longer mapping is cut on both sides.  `size` is a multiple of their size.
static char *map_huge_pages(size_t size) {
  char *mapped = map_pages(size + HUGE_PAGE);
  if (mapped == NULL) return NULL;
  size_t before = -(uintptr_t)mapped % HUGE_PAGE;
  if (before > 0) munmap(mapped, before);
  munmap(mapped + before + size, HUGE_PAGE - before);
  madvise(mapped + before, size, MADV_HUGEPAGE);
  return mapped + before;
}

static workspace *map_workspace(size_t size) {
  bool large = size >= LARGE;
  if (large) size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  workspace *space = (workspace *)(large ? map_huge_pages(size) : map_pages(size));
  if (space != NULL) space->size = size;
  return space;
}

// At least `bytes` bytes with any content, aligned to 64, for one call; NULL if the system has no more.
static workspace *take_workspace(size_t bytes) {
  size_t size = sizeof(workspace) + bytes;
  for (int i = 0; i < KEPT; i++) {
    if (atomic_load_explicit(&kept_workspaces[i], memory_order_relaxed) == NULL) continue;
    workspace *space = atomic_exchange(&kept_workspaces[i], NULL);
    if (space == NULL) continue;
    if (space->size >= size) return space;
    unmap_workspace(space);
    break;
  }
  return map_workspace(size);
}

static void give_back_workspace(workspace *space) {
  // Only whole pages; the first one holds the size.
  if (space->size >= LARGE) madvise((char *)space + HUGE_PAGE, space->size - HUGE_PAGE, MADV_FREE);
  for (int i = 0; i < KEPT; i++) {
    workspace *nothing = NULL;
    if (atomic_compare_exchange_strong(&kept_workspaces[i], &nothing, space)) return;
  }
  unmap_workspace(space);
}

#endif
