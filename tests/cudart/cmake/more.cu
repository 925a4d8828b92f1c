__device__ int result;
static_assert(sizeof(GREETING) == 10, "a string with a space in it");

__global__ void add(int a)
{
    if constexpr (sizeof(a) == 4) /* wants C++17 */
        result = a + a;
}

int twice(int a)
{
    add<<<1, 1>>>(a);
    cudaMemcpyFromSymbol(&a, result, sizeof(a));
    return a;
}
