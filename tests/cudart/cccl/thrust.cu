/*
 * Thrust on our headers and runtime library. What is expected is the C++ library's own algorithms
 * on the host, or arithmetic.
 */
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/merge.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "../check.h"

struct square {
    __host__ __device__ double operator()(int x) const
    {
        return (double)x * x;
    }
};
struct is_odd {
    __host__ __device__ bool operator()(int x) const
    {
        return x & 1;
    }
};

static std::vector<int> numbers(size_t count, unsigned below)
{
    std::vector<int> v(count);
    unsigned x = 12345;
    for (int &i : v) {
        x = x * 1664525 + 1013904223;
        i = (int)((x >> 8) % below) - (int)below / 2;
    }
    return v;
}

template <class D, class H> static bool same(const D &device, const H &host)
{
    std::vector<typename H::value_type> v(device.size());
    thrust::copy(device.begin(), device.end(), v.begin());
    return v.size() == host.size() && std::equal(v.begin(), v.end(), host.begin());
}

static void orders(size_t count)
{
    std::vector<int> h = numbers(count, 1u << 20);
    thrust::device_vector<int> d(h.begin(), h.end()), values(count);
    thrust::sequence(values.begin(), values.end());
    thrust::sort_by_key(d.begin(), d.end(), values.begin());
    std::vector<int> indices(count), sorted = h;
    std::iota(indices.begin(), indices.end(), 0);
    std::stable_sort(indices.begin(), indices.end(), [&](int a, int b) { return h[a] < h[b]; });
    std::sort(sorted.begin(), sorted.end());
    CHECK(same(d, sorted) && same(values, indices));
    thrust::device_vector<int> found(3), keys(3);
    keys[0] = sorted[0], keys[1] = sorted[count / 2], keys[2] = 1 << 30;
    thrust::lower_bound(d.begin(), d.end(), keys.begin(), keys.end(), found.begin());
    for (int i = 0; i < 3; i++)
        CHECK(found[i] == std::lower_bound(sorted.begin(), sorted.end(), (int)keys[i]) - sorted.begin());
    thrust::sort(d.begin(), d.end(), thrust::greater<int>()); /* a merge sort: no key of a radix */
    std::sort(sorted.begin(), sorted.end(), std::greater<int>());
    CHECK(same(d, sorted));
    std::vector<double> hd(h.begin(), h.end());
    thrust::device_vector<double> dd(hd.begin(), hd.end());
    thrust::stable_sort(dd.begin(), dd.end());
    std::sort(hd.begin(), hd.end());
    CHECK(same(dd, hd));
}

static void sums(size_t count)
{
    std::vector<int> h = numbers(count, 1000), e(count), i(count);
    thrust::device_vector<int> d(h.begin(), h.end()), r(count);
    CHECK(thrust::reduce(d.begin(), d.end()) == std::accumulate(h.begin(), h.end(), 0));
    CHECK(thrust::transform_reduce(d.begin(), d.end(), square(), 0.0, thrust::plus<double>()) ==
          std::inner_product(h.begin(), h.end(), h.begin(), 0.0));
    CHECK(thrust::inner_product(d.begin(), d.end(), d.begin(), 0ll) ==
          std::inner_product(h.begin(), h.end(), h.begin(), 0ll));
    CHECK(thrust::count_if(d.begin(), d.end(), is_odd()) == std::count_if(h.begin(), h.end(), is_odd()));
    CHECK(thrust::max_element(d.begin(), d.end()) - d.begin() ==
          std::max_element(h.begin(), h.end()) - h.begin());
    CHECK(*thrust::minmax_element(d.begin(), d.end()).first == *std::min_element(h.begin(), h.end()));
    std::partial_sum(h.begin(), h.end(), i.begin());
    thrust::inclusive_scan(d.begin(), d.end(), r.begin());
    CHECK(same(r, i));
    for (size_t k = 0; k < count; k++)
        e[k] = 7 + (k ? i[k - 1] : 0);
    thrust::exclusive_scan(d.begin(), d.end(), r.begin(), 7);
    CHECK(same(r, e));
    auto squares = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), square());
    double n = (double)count;
    CHECK(thrust::reduce(squares, squares + (long)count) == n * (n - 1) * (2 * n - 1) / 6);
}

static void choices(size_t count)
{
    std::vector<int> h = numbers(count, 50), kept, unique = h;
    thrust::device_vector<int> d(h.begin(), h.end()), out(count);
    out.resize((size_t)(thrust::copy_if(d.begin(), d.end(), out.begin(), is_odd()) - out.begin()));
    std::copy_if(h.begin(), h.end(), std::back_inserter(kept), is_odd());
    CHECK(same(out, kept));
    thrust::device_vector<int> even = d;
    even.erase(thrust::remove_if(even.begin(), even.end(), is_odd()), even.end());
    CHECK(even.size() + out.size() == count && !thrust::count_if(even.begin(), even.end(), is_odd()));
    std::sort(unique.begin(), unique.end());
    thrust::sort(d.begin(), d.end());
    thrust::device_vector<int> keys(count), ones(count, 1), counts(count);
    auto end = thrust::reduce_by_key(d.begin(), d.end(), ones.begin(), keys.begin(), counts.begin());
    keys.resize((size_t)(end.first - keys.begin()));
    for (size_t k = 0; k < keys.size(); k++)
        CHECK(counts[k] == std::count(h.begin(), h.end(), (int)keys[k]));
    d.erase(thrust::unique(d.begin(), d.end()), d.end());
    unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
    CHECK(same(d, unique) && same(keys, unique));
    thrust::device_vector<int> both(100), halves(50);
    thrust::sequence(halves.begin(), halves.end(), 0, 2);
    both.resize((size_t)(thrust::set_intersection(d.begin(), d.end(), halves.begin(), halves.end(),
                                                  both.begin()) - both.begin()));
    for (size_t k = 0; k < both.size(); k++)
        CHECK(both[k] == (int)(2 * k));
    thrust::device_vector<int> merged(150);
    thrust::merge(halves.begin(), halves.end(), thrust::counting_iterator<int>(0),
                  thrust::counting_iterator<int>(100), merged.begin());
    CHECK(thrust::is_sorted(merged.begin(), merged.end()) && merged[149] == 99);
}

int main()
{
    for (size_t count : { (size_t)1, (size_t)1000, (size_t)70000 }) {
        orders(count);
        sums(count);
        choices(count);
    }
    thrust::device_vector<float> a(1000, 2), b(1000, 3);
    thrust::transform(a.begin(), a.end(), b.begin(), a.begin(), thrust::multiplies<float>());
    auto zip = thrust::make_zip_iterator(thrust::make_tuple(a.begin(), b.begin()));
    CHECK(thrust::get<0>(zip[999]) == 6 && thrust::get<1>(zip[0]) == 3);
    CHECK(cudaGetLastError() == cudaSuccess);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
