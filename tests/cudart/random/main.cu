// Runs random programs, each in a process of its own: random [--from N] [--count N] [--print]. Without --print each program
// runs twice, and it is wrong if one of them crashes, takes too long, or prints something else than the other one.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include "random.cuh"

enum { SECONDS = 60 };

static const Subject *const subjects[] = { &device_subject, &memory_subject, &copy_subject,  &stream_subject, &event_subject,
                                           &launch_subject, &graph_subject,  &array_subject, &symbol_subject, &pool_subject };
enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

static uint64_t state;
static cudaError_t last;
static unsigned lines;

static uint64_t next()
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void seed(uint64_t program, uint64_t call)
{
    state = program * 0xd1342543de82ef95 + call * 0x2545f4914f6cdd1d;
    next();
}

unsigned draw(unsigned below)
{
    return below ? (unsigned)(next() % below) : 0;
}

size_t draw_size(size_t most)
{
    if (draw(4))
        return draw((unsigned)most) + 1;
    return one_of<size_t>({ 0, 1, 4, 255, 256, most - 1, most, most + 1 });
}

void say(const char *format, ...)
{
    va_list args;
    printf("%s%u ", lines ? "\n" : "", lines + 1);
    lines++;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
}

static const char *name_of(cudaError_t e)
{
    return cudaGetErrorName(e) + strlen("cuda");
}

cudaError_t done(cudaError_t result)
{
    printf(" = %s", name_of(result));
    const cudaError_t now = cudaPeekAtLastError();
    if (now != last)
        printf(" (last %s)", name_of(now));
    last = now;
    return result;
}

void out(const char *format, ...)
{
    va_list args;
    printf(", ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
}

uint32_t hash(const void *data, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 16777619u;
    return h;
}

static const Subject *pick_subject(unsigned liked)
{
    unsigned n = draw(SUBJECTS);
    while (draw(4) && !(liked & 1u << n))
        n = (n + 1) % SUBJECTS;
    return subjects[n];
}

// A program is mostly about a few subjects.
static void run(uint64_t number)
{
    seed(number, 0);
    const unsigned calls = 30 + draw(150), liked = 1u << draw(SUBJECTS) | 1u << draw(SUBJECTS) | 1u << draw(SUBJECTS);
    const bool ends_badly = chance(8);
    for (unsigned i = 0; i < SUBJECTS; i++)
        if (subjects[i]->begin && draw(3))
            subjects[i]->begin();
    for (unsigned n = 1; n <= calls; n++) {
        seed(number, n);
        if (ends_badly && n + 12 == calls)
            fault();
        pick_subject(liked)->call();
    }
    look();
    printf("\n");
    fflush(stdout);
}

// What a program prints, and how it ended if that is no good end.
static std::string run_child(uint64_t number, bool *good)
{
    char part[4096];
    int ends[2], status;
    std::string text;
    fflush(stdout);
    if (pipe(ends))
        abort();
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(SECONDS);
        run(number);
        exit(0);
    }
    close(ends[1]);
    for (ssize_t k; (k = read(ends[0], part, sizeof(part))) > 0;)
        text.append(part, (size_t)k);
    close(ends[0]);
    waitpid(pid, &status, 0);
    *good = status == 0;
    if (WIFSIGNALED(status))
        text += WTERMSIG(status) == SIGALRM ? " hangs\n" : std::string(" ") + strsignal(WTERMSIG(status)) + "\n";
    else if (status)
        text += " has left\n";
    return text;
}

int main(int argc, char **argv)
{
    unsigned long long from = 1, count = 20, wrong = 0;
    bool print = false, good, again;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--print"))
            print = true;
        else if (i + 1 < argc && !strcmp(argv[i], "--from"))
            from = strtoull(argv[++i], nullptr, 0);
        else if (i + 1 < argc && !strcmp(argv[i], "--count"))
            count = strtoull(argv[++i], nullptr, 0);
        else
            return 2;
    }
    for (unsigned long long n = from; n < from + count; n++) {
        const std::string text = run_child(n, &good);
        if (print) {
            printf("== %llu\n%s", n, text.c_str());
            continue;
        }
        if (good && run_child(n, &again) == text && again)
            continue;
        wrong++;
        printf("program %llu %s: ... %s\n", n, good ? "differs the second time" : "ends badly",
               text.substr(text.size() > 200 ? text.size() - 200 : 0).c_str());
    }
    if (!print && !wrong)
        printf("passed\n");
    return wrong != 0;
}
