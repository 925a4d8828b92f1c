/* Runs one case, or prints the names of all. */
#include "answers.h"

#include <stdlib.h>
#include <unistd.h>

#define CASE_SECONDS 60

static const struct answers_case *const lists[] = {
    answers_device,  answers_context, answers_module, answers_function, answers_memory,
    answers_host,    answers_pointer, answers_copy,   answers_managed,  answers_pool,
    answers_virtual, answers_ipc,     answers_stream, answers_event,    answers_launch,
    answers_fault,   answers_graph,   answers_node,   answers_misc,
};

CUresult answers_call(const char *text, CUresult result)
{
    const char *name = NULL;
    if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
        name = "?";
    if (strncmp(name, "CUDA_", 5) == 0)
        name += 5;
    if (strncmp(name, "ERROR_", 6) == 0)
        name += 6;
    printf("%s = %s\n", text, name);
    return result;
}

void answers_number(const char *text, long long value, bool machine)
{
    printf("%s%s: %lld\n", machine ? "~ " : "", text, value);
}

void answers_text(const char *label, const char *text)
{
    printf("%s: %s\n", label, text ? text : "(none)");
}

CUmodule answers_image(void)
{
    static CUmodule module;
    if (!module)
        CALL(cuModuleLoadData(&module, answers_ptx));
    return module;
}

CUfunction answers_function_of(const char *name)
{
    CUfunction f = NULL;
    CUresult r = cuModuleGetFunction(&f, answers_image(), name);
    if (r != CUDA_SUCCESS)
        answers_call(name, r);
    return f;
}

long long answers_word(CUdeviceptr at)
{
    uint32_t word = 0;
    return cuMemcpyDtoH(&word, at, sizeof(word)) == CUDA_SUCCESS ? (long long)word : -1;
}

CUresult answers_fill(CUstream stream, CUdeviceptr out, unsigned n, unsigned value)
{
    void *params[] = { &out, &n, &value };
    return cuLaunchKernel(answers_function_of("fill"), (n + 63) / 64, 1, 1, 64, 1, 1, 0, stream,
                          params, NULL);
}

static int run(const struct answers_case *c)
{
    CUcontext context;
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(CASE_SECONDS);
    if (!c->bare &&
        (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
         cuCtxSetCurrent(context) != CUDA_SUCCESS)) {
        printf("no context\n");
        return EXIT_FAILURE;
    }
    c->run();
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT(lists); i++)
        for (const struct answers_case *c = lists[i]; c->name; c++) {
            if (argc < 2)
                puts(c->name);
            else if (strcmp(argv[1], c->name) == 0)
                return run(c);
        }
    return argc < 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
