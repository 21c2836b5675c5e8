// Workspaces: the memory that a call needs beyond its arrays, kept between calls.
//
// Fresh memory costs a page fault wherever it is touched first, so a call takes over the workspace that an earlier call
// of any kernel left, if it is large enough.  There are never more workspaces than calls ran at one time, at most KEPT
// of them stay, and what stays of a large one the system may take back as soon as it runs short of memory.

#ifndef TC_WORKSPACE_H
#define TC_WORKSPACE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
  KEPT = 8,
  HUGE_PAGE = 2 << 20,
  LARGE_WORKSPACE = 16 << 20,  // telling the system that it may take one back costs about 10 microseconds
};

typedef struct workspace {
  _Alignas(64) size_t size;  // of the whole mapping; the workspace itself follows
} workspace;

// What another thread of the parent was using at the time of a fork is lost to the child; the rest is its own copy.
static _Atomic(workspace *) kept_workspaces[KEPT];

static void unmap_workspace(workspace *space) { munmap(space, space->size); }

static workspace *map_workspace(size_t size) {
  size_t unit = size < HUGE_PAGE ? 4096 : HUGE_PAGE;
  size = (size + unit - 1) / unit * unit;
  // Longer by a unit, so that an aligned part can be cut out.
  char *mapped = mmap(NULL, size + unit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return NULL;
  char *aligned = (char *)(((uintptr_t)mapped + unit - 1) / unit * unit);
  if (aligned > mapped) munmap(mapped, (size_t)(aligned - mapped));
  munmap(aligned + size, (size_t)(mapped + unit - aligned));
  if (unit == HUGE_PAGE) madvise(aligned, size, MADV_HUGEPAGE);
  workspace *space = (workspace *)aligned;
  space->size = size;
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
  if (space->size >= LARGE_WORKSPACE) madvise((char *)space + HUGE_PAGE, space->size - HUGE_PAGE, MADV_FREE);
  for (int i = 0; i < KEPT; i++) {
    workspace *nothing = NULL;
    if (atomic_compare_exchange_strong(&kept_workspaces[i], &nothing, space)) return;
  }
  unmap_workspace(space);
}

#endif
