/* What a GPU can do at most: multiplications with additions, reading, copying, and a launch. */

#define CHAINS 12

/* Chains of dependent multiplications with additions, more of them than are under way at any time.  Does
   2 * rounds * CHAINS operations in every thread. */
extern "C" __global__ void tc_multiply_add(float *result, long long rounds, float factor, float summand)
{
    float chain[CHAINS];
    for (int c = 0; c < CHAINS; c++)
        chain[c] = summand + c;
#pragma unroll 1
    for (long long r = 0; r < rounds; r += 16)
#pragma unroll
        for (int u = 0; u < 16; u++)
#pragma unroll
            for (int c = 0; c < CHAINS; c++)
                chain[c] = chain[c] * factor + summand;
    float sum = 0;
    for (int c = 0; c < CHAINS; c++)
        sum += chain[c];
    if (sum == 0.123f)
        *result = sum;
}

/* Reads as many vectors as there are, the threads of the whole grid beside each other. */
extern "C" __global__ void tc_read(float *result, const float4 *from, long long vectors)
{
    long long all = (long long)gridDim.x * blockDim.x;
    float4 sum = {0, 0, 0, 0};
#pragma unroll 4
    for (long long v = (long long)blockIdx.x * blockDim.x + threadIdx.x; v < vectors; v += all) {
        float4 read = from[v];
        sum.x += read.x, sum.y += read.y, sum.z += read.z, sum.w += read.w;
    }
    if (sum.x + sum.y + sum.z + sum.w == 0.123f)
        *result = sum.x;
}

/* Copies as many vectors. */
extern "C" __global__ void tc_copy(float4 *to, const float4 *from, long long vectors)
{
    long long all = (long long)gridDim.x * blockDim.x;
#pragma unroll 4
    for (long long v = (long long)blockIdx.x * blockDim.x + threadIdx.x; v < vectors; v += all)
        to[v] = from[v];
}

/* Ends at once. */
extern "C" __global__ void tc_nothing(float *)
{
}
