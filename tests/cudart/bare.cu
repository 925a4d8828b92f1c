// A program without a single #include: NVIDIA's compiler lets programs have some of C's and C++'s
// headers without, and many count on it.
extern "C" int puts(const char *text);

struct pair {
    int a, b;
};

struct number {
    size_t n;
    __device__ virtual size_t get()
    {
        return n;
    }
    __device__ virtual ~number()
    {
    }
};

struct twice : number {
    __device__ size_t get() override
    {
        return 2 * n;
    }
};

__device__ size_t made_and_deleted(size_t n)
{
    number *one = n % 2 ? new twice : new number;
    size_t *many = new size_t[3];
    one->n = many[2] = n;
    size_t got = one->get() + many[2];
    delete[] many;
    delete one;
    return got;
}

__global__ void turn(struct pair *p, size_t n)
{
    size_t t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n) {
        struct pair x = p[t];
        int a = x.a;
        x.a = x.b + (clock() < 0);
        x.b = a;
        if (made_and_deleted(t) == (t % 2 ? 3 : 2) * t)
            p[t] = x;
    }
}

int main()
{
    time_t before = time(NULL);
    const char *text = "7 seas";
    struct pair *p, h[40];
    memset(h, 0, sizeof(h));
    for (int k = 0; k < 40; k++)
        h[k].a = isdigit(text[0]) ? atoi(text) * k : -1;
    std::swap(h[0], h[39]);
    bool right = cudaMalloc(&p, sizeof(h)) == cudaSuccess;
    right = right && cudaMemcpy(p, h, sizeof(h), cudaMemcpyHostToDevice) == cudaSuccess;
    turn<<<2, 32>>>(p, 40);
    right = right && cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) == cudaSuccess;
    for (int k = 1; k < 39; k++)
        right = right && h[k].a == 0 && h[k].b == 7 * k;
    right = right && h[0].b == 273 && h[39].b == 0 && fabs(sqrt(4.0) - 2) < 1e-9;
    right = right && time(NULL) >= before && clock() >= 0;
    puts(right ? "passed" : "failed");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
