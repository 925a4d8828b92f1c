/* CUB, which comes with the toolkit: a radix sort of pairs and a scan. */
#include <algorithm>
#include <numeric>
#include <vector>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "check.cuh"

#define N 300000

int main()
{
    std::vector<unsigned> keys(N), values(N), sorted(N), order(N), sums(N), expected(N);
    unsigned *k, *v, *k2, *v2;
    void *room = NULL;
    size_t bytes = 0;
    for (unsigned i = 0; i < N; i++) {
        keys[i] = scrambled(i) % 5000; /* many are the same: the sort is stable */
        values[i] = i;
    }
    MUST(cudaMalloc(&k, N * 4));
    MUST(cudaMalloc(&v, N * 4));
    MUST(cudaMalloc(&k2, N * 4));
    MUST(cudaMalloc(&v2, N * 4));
    SAY(cudaMemcpy(k, keys.data(), N * 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(v, values.data(), N * 4, cudaMemcpyHostToDevice));
    SAY(cub::DeviceRadixSort::SortPairs(room, bytes, k, k2, v, v2, N));
    MUST(cudaMalloc(&room, bytes));
    SAY(cub::DeviceRadixSort::SortPairs(room, bytes, k, k2, v, v2, N));
    SAY(cudaMemcpy(sorted.data(), k2, N * 4, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpy(order.data(), v2, N * 4, cudaMemcpyDeviceToHost));
    std::stable_sort(values.begin(), values.end(), [&](unsigned a, unsigned b) { return keys[a] < keys[b]; });
    CHECK(order == values);
    CHECK(std::is_sorted(sorted.begin(), sorted.end()));
    SAY(cudaFree(room));

    room = NULL;
    SAY(cub::DeviceScan::InclusiveSum(room, bytes, k, k2, N));
    MUST(cudaMalloc(&room, bytes));
    SAY(cub::DeviceScan::InclusiveSum(room, bytes, k, k2, N));
    SAY(cudaMemcpy(sums.data(), k2, N * 4, cudaMemcpyDeviceToHost));
    std::partial_sum(keys.begin(), keys.end(), expected.begin());
    CHECK(sums == expected);
    SAY(cudaFree(room));
    return verdict();
}
