/* What both sources use: functions and variables of the other, and an inline function of both. */
inline __device__ int counted(int x)
{
    static int calls = 7;
    return x + atomicAdd(&calls, 1);
}
extern __device__ int total;
extern __constant__ int factor[2];
extern __managed__ int managed;
__device__ int twice(int x);
__global__ void add(int x);
int host_total();
