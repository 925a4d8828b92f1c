/*
 * Random work (order.cuh) of many processes at once, clients of one daemon, which have different shares,
 * priorities and limits. Workers also hand over parcels: memory that one of them has made, with an event
 * for the workers' last use of it, and one for that of each bystander. Bystanders read the parcels beside
 * the workers: one half of them dies at any moment, the other half ends with a kernel that faults. Their
 * events then count as done. The workers go on.
 *
 *     order_processes [FIRST [COUNT]]
 */
#include <atomic>
#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "order.cuh"

enum { WORKERS = 3, BYSTANDERS = 2, PARCEL_NUMBERS = 900, LIMIT_MIB = 64, LIFE_US = 60000 };

enum { EVENTS = 1 + BYSTANDERS };

// One of each worker, in memory of all processes. The first event is recorded by workers, each after it has waited
// for all of them; a bystander waits for the first one and records its own. So nobody relies on an order that comes
// about through a process that may have died.
struct parcel {
    pthread_mutex_t lock;
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t events[EVENTS];
    int model[PARCEL_NUMBERS];
};
static struct shared {
    parcel parcels[WORKERS];
    std::atomic<int> made, done, alone, closed, failed; // workers that are so far; but of bystanders who failed
    std::atomic<long> handed, read, faults;
} *shared;

static void wait_until(const std::atomic<int> &count)
{
    while (count < WORKERS)
        sched_yield();
}

struct peer_sequence : sequence {
    const int self; // the number of a worker; WORKERS and more: it is a bystander
    int *memory[WORKERS] = {};
    cudaEvent_t parcel_events[WORKERS][EVENTS] = {};

    explicit peer_sequence(int number) : self(number) {}

    bool is_worker(void) const
    {
        return self < WORKERS;
    }

    // What is a worker's own stays until nobody has it open.
    ~peer_sequence()
    {
        for (int n = 0; n < WORKERS; n++) {
            if (memory[n] && n != self)
                OK(cudaIpcCloseMemHandle(memory[n]));
            for (cudaEvent_t event : parcel_events[n])
                OK(event ? cudaEventDestroy(event) : cudaSuccess);
        }
        shared->closed++;
        wait_until(shared->closed);
        OK(cudaFree(memory[self]));
    }

    void make(void)
    {
        parcel &p = shared->parcels[self];
        OK(cudaMalloc(&memory[self], PARCEL_NUMBERS * 4));
        OK(cudaMemset(memory[self], 0, PARCEL_NUMBERS * 4));
        OK(cudaIpcGetMemHandle(&p.memory, memory[self]));
        for (int e = 0; e < EVENTS; e++) {
            cudaEvent_t &event = parcel_events[self][e];
            OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
            OK(cudaEventRecord(event, 0));
            OK(cudaIpcGetEventHandle(&p.events[e], event));
        }
        shared->made++;
    }

    void work(cudaStream_t stream, bool captured) override
    {
        if (captured || draw(3))
            sequence::work(stream, captured);
        else
            use_parcel(draw(WORKERS), stream);
    }

    void use_parcel(int number, cudaStream_t stream)
    {
        parcel &p = shared->parcels[number];
        if (pthread_mutex_lock(&p.lock) == EOWNERDEAD)
            pthread_mutex_consistent(&p.lock);
        open_parcel(p, number);
        if (!failures)
            use_open(p, number, stream);
        pthread_mutex_unlock(&p.lock);
    }

    void open_parcel(const parcel &p, int number)
    {
        if (!memory[number])
            OK(cudaIpcOpenMemHandle((void **)&memory[number], p.memory, cudaIpcMemLazyEnablePeerAccess));
        for (int e = 0; e < EVENTS; e++)
            if (!parcel_events[number][e])
                OK(cudaIpcOpenEventHandle(&parcel_events[number][e], p.events[e]));
    }

    // And closes it again, now and then.
    void use_open(parcel &p, int number, cudaStream_t stream)
    {
        cudaEvent_t *const events = parcel_events[number], &own = events[is_worker() ? 0 : 1 + self - WORKERS];
        for (int e = 0; e < (is_worker() ? EVENTS : 1); e++)
            OK(draw(4) ? cudaStreamWaitEvent(stream, events[e], 0) : cudaEventSynchronize(events[e]));
        trade(memory[number], p.model, PARCEL_NUMBERS, stream, !is_worker());
        OK(cudaEventRecord(own, stream));
        if (number != self && !draw(4)) {
            OK(cudaEventDestroy(own));
            own = nullptr;
        }
        if (number != self && !draw(8)) {
            OK(cudaStreamSynchronize(stream));
            OK(cudaIpcCloseMemHandle(memory[number]));
            memory[number] = nullptr;
        }
        (is_worker() ? shared->handed : shared->read)++;
    }

    // The parcel of this worker, when nobody changes it any more.
    void verify(void)
    {
        OK(cudaEventSynchronize(parcel_events[self][0]));
        OK(cudaMemcpy(page.data(), memory[self], PARCEL_NUMBERS * 4, cudaMemcpyDefault));
        CHECK(memcmp(page.data(), shared->parcels[self].model, PARCEL_NUMBERS * 4) == 0);
    }
};

// What the daemon knows of this process before it begins.
static void set_limits(unsigned number)
{
    static const char *const shares[] = { "100", "30", "60" };
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", shares[number % 3], 1);
    setenv("CUDA_MPS_CLIENT_PRIORITY", number % 2 ? "1" : "0", 1);
    setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", ("0=" + std::to_string(LIMIT_MIB) + "M").c_str(), 1);
}

static void run_programs(peer_sequence &all, unsigned first, unsigned count)
{
    for (unsigned seed = first; seed < first + count && !failures; seed++) {
        all.program(seed, { FIRST, SECOND, NON_BLOCKING }, cudaStreamCaptureModeRelaxed);
        if (failures)
            printf("in program %u of process %d\n", seed, all.self);
    }
}

static int worker(int number, unsigned first, unsigned count)
{
    void *too_much;
    set_limits((unsigned)number);
    {
        peer_sequence all(number);
        all.make();
        wait_until(shared->made);
        run_programs(all, first + (unsigned)number * count, count);
        CHECK(cudaMalloc(&too_much, LIMIT_MIB << 20) == cudaErrorMemoryAllocation && cudaGetLastError() == cudaErrorMemoryAllocation);
        shared->done++;
        wait_until(shared->alone);
        all.verify();
    }
    return failures != 0;
}

__global__ void store(int *where)
{
    *where = 1;
}

// Dies when its time is up, or ends by a kernel's fault.
static int bystander(int place, unsigned number)
{
    set_limits(number);
    wait_until(shared->made);
    peer_sequence *all = new peer_sequence(WORKERS + place);
    if (place % 2) {
        const itimerval life = { {}, { 0, 1 + (suseconds_t)(number * 2654435761u % LIFE_US) } };
        CHECK(setitimer(ITIMER_REAL, &life, nullptr) == 0);
        for (unsigned seed = number; !failures; seed++)
            run_programs(*all, seed, 1);
    } else {
        run_programs(*all, number, 1);
        store<<<1, 1, 0, all->streams[NON_BLOCKING]>>>((int *)16);
        CHECK(cudaStreamSynchronize(all->streams[NON_BLOCKING]) == cudaErrorIllegalAddress);
        CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
        shared->faults++;
    }
    shared->failed += failures;
    return failures != 0;
}

static pid_t start(const std::function<int()> &what)
{
    const pid_t parent = getpid(), child = fork();
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    _exit(what());
}

// Starts bystanders until the workers are done. Nothing of CUDA is called in this process.
int main(int argc, char **argv)
{
    const unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 1, count = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    unsigned number = first, killed = 0, running = WORKERS;
    pid_t bystanders[BYSTANDERS], ended;
    pthread_mutexattr_t robust;
    int status;
    setlinebuf(stdout);
    shared = (struct shared *)mmap(nullptr, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    for (parcel &p : shared->parcels)
        CHECK(pthread_mutex_init(&p.lock, &robust) == 0);
    for (int n = 0; n < WORKERS; n++)
        start([=] { return worker(n, first, count); });
    for (int n = 0; n < BYSTANDERS; n++, number++, running++)
        bystanders[n] = start([=] { return bystander(n, number); });
    while (!failures && running && (ended = wait(&status)) > 0) {
        const bool by_time = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        running--;
        killed += by_time;
        CHECK(by_time || (WIFEXITED(status) && WEXITSTATUS(status) == 0) || !printf("status %d\n", status));
        for (int n = 0; n < BYSTANDERS; n++)
            if (bystanders[n] == ended && shared->done < WORKERS) {
                bystanders[n] = start([=] { return bystander(n, number); });
                number++, running++;
            }
        if (running == WORKERS && shared->done == WORKERS)
            shared->alone = WORKERS;
    }
    CHECK(shared->failed == 0 && killed && shared->faults && shared->handed > count && shared->read);
    printf("%ld times handed over, %ld times read; %u processes killed, %ld faults\n", shared->handed.load(),
           shared->read.load(), killed, shared->faults.load());
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
