#define _GNU_SOURCE
#include <sys/mman.h>

/* What a processor can do at most: multiplications with additions, reading, copying, and providing memory.  VECTOR_BYTES is that of the
   target's registers. */

typedef float vector __attribute__((vector_size(VECTOR_BYTES), aligned(VECTOR_BYTES)));

enum { LANES = VECTOR_BYTES / sizeof(float), CHAINS = 12 };

/* Chains of dependent multiplications with additions, more of them than are under way at any time, and few enough for
   the registers of every target.  Does 2 * rounds * CHAINS * LANES operations. */
float tc_multiply_add(long rounds, float factor, float summand)
{
    vector chain[CHAINS], f = factor - (vector){}, s = summand - (vector){};
    for (int c = 0; c < CHAINS; c++)
        chain[c] = s + (float)c;
    for (long r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++)
            chain[c] = chain[c] * f + s;
    vector sum = chain[0];
    for (int c = 1; c < CHAINS; c++)
        sum += chain[c];
    float total = 0;
    for (int l = 0; l < LANES; l++)
        total += sum[l];
    return total;
}

/* Reads vectors (a multiple of 8 of them) rounds times. */
float tc_read(const vector *from, long vectors, long rounds)
{
    vector sum[8] = {};
    for (long r = 0; r < rounds; r++) {
        for (long v = 0; v < vectors; v += 8)
#pragma GCC unroll 8
            for (int u = 0; u < 8; u++)
                sum[u] += from[v + u];
        __asm__ volatile("" ::: "memory");
    }
    vector all = sum[0];
    for (int u = 1; u < 8; u++)
        all += sum[u];
    float total = 0;
    for (int l = 0; l < LANES; l++)
        total += all[l];
    return total;
}

/* Copies bytes rounds times, as the C library does it. */
void tc_copy(char *to, const char *from, long bytes, long rounds)
{
    for (long r = 0; r < rounds; r++) {
        __builtin_memcpy(to, from, bytes);
        __asm__ volatile("" ::: "memory");
    }
}

/* Takes bytes (a multiple of those of a huge page) of memory from the system, touches every page, and gives them back,
   rounds times.  Returns how often that failed. */
float tc_fresh(long bytes, long rounds)
{
    enum { PAGE = 4096, HUGE_PAGE = 1 << 21 };
    float failed = 0;
    for (long r = 0; r < rounds; r++) {
        char *all = mmap(0, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) {
            failed++;
            continue;
        }
        volatile char *begin = all + (-(long)all & (HUGE_PAGE - 1));
#ifdef MADV_HUGEPAGE
        madvise((char *)begin, bytes, MADV_HUGEPAGE);
#endif
        for (long b = 0; b < bytes; b += PAGE)
            begin[b] = 1;
        munmap(all, bytes + HUGE_PAGE);
    }
    return failed;
}
