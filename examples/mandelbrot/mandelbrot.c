/*
 * The Mandelbrot set, written as a PNG and compared with the CPU pixel by pixel.
 *
 * Expect: "mandelbrot: 1024 x 1024, 0.0 % of the pixels differ from the CPU's" (a few on the border
 * may, where fused multiply-add rounds differently) and the file named last on the command line, if
 * any.
 */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

static unsigned iterate(float cx, float cy, unsigned limit)
{
    float x = 0, y = 0;
    unsigned i = 0;
    while (i < limit && x * x + y * y <= 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        i++;
    }
    return i;
}

static bool write_png(const char *path, const unsigned *iterations, long width, long height,
                      long limit)
{
    png_image image = { .version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB };
    unsigned char *rgb = malloc((size_t)(width * height) * 3);
    if (!rgb)
        return false;
    for (long i = 0; i < width * height; i++) {
        unsigned n = iterations[i];
        bool inside = n == (unsigned)limit;
        rgb[3 * i] = (unsigned char)(inside ? 0 : (n * 9) & 255);
        rgb[3 * i + 1] = (unsigned char)(inside ? 0 : (n * 5) & 255);
        rgb[3 * i + 2] = (unsigned char)(inside ? 0 : 128 + ((n * 3) & 127));
    }
    image.width = (png_uint_32)width;
    image.height = (png_uint_32)height;
    int ok = png_image_write_to_file(&image, path, 0, rgb, 0, NULL);
    if (!ok)
        fprintf(stderr, "%s: %s\n", path, image.message);
    free(rgb);
    return ok != 0;
}

int main(int argc, char **argv)
{
    long size = 1024;
    long limit = 256;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (ex_option(argv[i], "size", 16, 16384, &size) ||
            ex_option(argv[i], "limit", 1, 1000000, &limit))
            continue;
        if (argv[i][0] == '-') {
            fprintf(stderr, "usage: %s [-size=PIXELS] [-limit=ITERATIONS] [FILE.png]\n", argv[0]);
            return 2;
        }
        path = argv[i];
    }
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "mandelbrot");
    size_t bytes = (size_t)(size * size) * sizeof(unsigned);
    unsigned *pixels = malloc(bytes);
    CUdeviceptr image;
    if (!pixels)
        return 1;
    EX_CHECK(cuMemAlloc(&image, bytes));

    int width = (int)size, height = (int)size, most = (int)limit;
    float x0 = -2.0f, y0 = -1.25f, dx = 2.5f / (float)size, dy = 2.5f / (float)size;
    unsigned tiles = ((unsigned)size + 15) / 16;
    void *params[] = { &image, &width, &height, &x0, &y0, &dx, &dy, &most };
    double t0 = ex_seconds();
    EX_CHECK(cuLaunchKernel(f, tiles, tiles, 1, 16, 16, 1, 0, NULL, params, NULL));
    EX_CHECK(cuCtxSynchronize());
    double t = ex_seconds() - t0;
    EX_CHECK(cuMemcpyDtoH(pixels, image, bytes));

    long differ = 0;
    double total = 0;
    for (long y = 0; y < size; y++)
        for (long x = 0; x < size; x++) {
            unsigned expected = iterate(x0 + (float)x * dx, y0 + (float)y * dy, (unsigned)limit);
            differ += pixels[y * size + x] != expected;
            total += pixels[y * size + x];
        }
    double share = 100.0 * (double)differ / (double)(size * size);
    bool good = share < 2.0;
    printf("mandelbrot: %ld x %ld, %.1f %% of the pixels differ from the CPU's%s\n", size, size,
           share, good ? "" : ": WRONG");
    printf("mandelbrot: %.2f billion iterations per second\n", total / t * 1e-9);
    if (path)
        good = write_png(path, pixels, size, size, limit) && good;
    EX_CHECK(cuMemFree(image));
    ex_close(&d);
    free(pixels);
    return good ? 0 : 1;
}
