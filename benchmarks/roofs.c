/* What a processor can do at most: multiplications with additions, reading, and copying.  VECTOR_BYTES is that of the
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
