// All-pairs gravitation, one thread per body, the other bodies through shared memory a tile at a time.
// Positions are {x, y, z, mass}. The number of bodies is a multiple of the block size.
#include "../common/device.cuh"

#define TILE 256

extern "C" __global__ void nbody_f32(float4 *new_pos, const float4 *old_pos, float4 *vel, int n, float dt,
                                     float damping, float softening2)
{
    __shared__ float4 tile[TILE];
    int i = blockIdx_x * TILE + threadIdx_x;
    float4 p = old_pos[i];
    float ax = 0, ay = 0, az = 0;
    for (int t = 0; t < n; t += TILE) {
        tile[threadIdx_x] = old_pos[t + threadIdx_x];
        syncthreads();
#pragma unroll 32
        for (int k = 0; k < TILE; k++) {
            float4 q = tile[k];
            float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
            float d2 = dx * dx + dy * dy + dz * dz + softening2;
            float inv = rsqrt_approx(d2);
            float s = q.w * inv * inv * inv;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        syncthreads();
    }
    float4 v = vel[i];
    v.x = (v.x + ax * dt) * damping;
    v.y = (v.y + ay * dt) * damping;
    v.z = (v.z + az * dt) * damping;
    p.x += v.x * dt;
    p.y += v.y * dt;
    p.z += v.z * dt;
    new_pos[i] = p;
    vel[i] = v;
}

extern "C" __global__ void nbody_f64(double *new_pos, const double *old_pos, double *vel, int n, double dt,
                                     double damping, double softening2)
{
    __shared__ double tile[TILE][4];
    int i = blockIdx_x * TILE + threadIdx_x;
    double px = old_pos[4 * i], py = old_pos[4 * i + 1], pz = old_pos[4 * i + 2], pw = old_pos[4 * i + 3];
    double ax = 0, ay = 0, az = 0;
    for (int t = 0; t < n; t += TILE) {
        for (int c = 0; c < 4; c++)
            tile[threadIdx_x][c] = old_pos[4 * (t + threadIdx_x) + c];
        syncthreads();
#pragma unroll 8
        for (int k = 0; k < TILE; k++) {
            double dx = tile[k][0] - px, dy = tile[k][1] - py, dz = tile[k][2] - pz;
            double d2 = dx * dx + dy * dy + dz * dz + softening2;
            double inv = 1.0 / __nvvm_sqrt_rn_d(d2);
            double s = tile[k][3] * inv * inv * inv;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        syncthreads();
    }
    double vx = (vel[4 * i] + ax * dt) * damping;
    double vy = (vel[4 * i + 1] + ay * dt) * damping;
    double vz = (vel[4 * i + 2] + az * dt) * damping;
    new_pos[4 * i] = px + vx * dt;
    new_pos[4 * i + 1] = py + vy * dt;
    new_pos[4 * i + 2] = pz + vz * dt;
    new_pos[4 * i + 3] = pw;
    vel[4 * i] = vx;
    vel[4 * i + 1] = vy;
    vel[4 * i + 2] = vz;
}
