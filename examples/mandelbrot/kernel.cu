// Iterations until |z| > 2, per pixel: neighbouring threads leave the loop at different times.
#include "../common/device.cuh"

extern "C" __global__ void mandelbrot(unsigned *iterations, int width, int height, float x0, float y0, float dx,
                                      float dy, int limit)
{
    int px = blockIdx_x * blockDim_x + threadIdx_x;
    int py = blockIdx_y * blockDim_y + threadIdx_y;
    if (px >= width || py >= height)
        return;
    float cx = x0 + px * dx, cy = y0 + py * dy;
    float x = 0, y = 0;
    int i = 0;
    while (i < limit && x * x + y * y <= 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        i++;
    }
    iterations[py * width + px] = i;
}
