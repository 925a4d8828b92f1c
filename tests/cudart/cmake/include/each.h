#define EACH(i, n) for (int i = threadIdx.x; i < n; i += blockDim.x)
