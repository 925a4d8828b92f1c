// What managed.cubin was made of, by make.sh: managed variables, and each way in which an address comes into an image.
__managed__ int first = 7;
__managed__ int table[100];
__managed__ int *to_device;
__device__ int plain = 3;

extern "C" __global__ void touch(int by)
{
    first += by;
    table[threadIdx.x] = by + plain;
    to_device = &plain;
}
