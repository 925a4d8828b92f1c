// Random programs of calls of the runtime API, each of which prints what its calls answer: for a comparison with another
// runtime library's output. What may be different on each device (addresses, names, numbers of its own) is not printed.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

// Random numbers, which begin anew with each call of a program, so that one that goes otherwise leaves the next as it is. Two of
// them within one expression are drawn in the order of a list in braces; that of arguments in parentheses is the compiler's choice.
void seed(uint64_t program, uint64_t call);
unsigned draw(unsigned below);
inline bool chance(unsigned in)
{
    return draw(in) == 0;
}
template <class T> T one_of(std::initializer_list<T> all)
{
    return all.begin()[draw((unsigned)all.size())];
}
// Mostly one up to `most`, now and then one at the edges or beyond.
size_t draw_size(size_t most);

// Begins a line, with a call that is about to be made.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Ends it with what the call answered, and with the last error, if that is another one than before.
cudaError_t done(cudaError_t result);
// Adds to it what the call gave.
void out(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint32_t hash(const void *data, size_t size);

// Handles of one kind that the program has. A picked one is NULL now and then.
enum { SLOTS = 6 };
template <class T> struct Table {
    const char *kind;
    T at[SLOTS] = {};
    bool live[SLOTS] = {};
    struct Picked {
        T handle;
        std::string name;
        int slot; // -1: NULL
    };
    // NULL once in so many times; 0: only if there is none.
    Picked pick(unsigned null_in = 12)
    {
        const int first = (int)draw(SLOTS);
        const bool none = null_in && chance(null_in);
        for (int i = 0; i < SLOTS && !none; i++) {
            const int n = (first + i) % SLOTS;
            if (live[n])
                return { at[n], kind + std::to_string(n), n };
        }
        return { T(), "NULL", -1 };
    }
    // A place for a new one; -1: there is none.
    int place() const
    {
        for (int n = 0; n < SLOTS; n++)
            if (!live[n])
                return n;
        return -1;
    }
};

struct Memory {
    enum Kind { DEVICE, POOL, MANAGED, PINNED, PAGEABLE, KINDS } kind;
    char *address;
    size_t size;
};
extern Table<Memory> memories;
// Its name says which kind it is.
Table<Memory>::Picked pick_memory(unsigned null_in = 12);
extern Table<cudaStream_t> streams;
extern Table<cudaEvent_t> events;
extern Table<cudaGraph_t> graphs;
extern Table<cudaArray_t> arrays;

// A stream of the program's, or one that is always there; while it captures, its work is not waited for.
Table<cudaStream_t>::Picked pick_stream();
bool any_captures();
// Waits for the work of a call, so that what is in memory does not depend on who is faster.
void settle();
// A graph was launched, whose nodes have no order: nobody knows what is in memory.
extern bool unordered;
// Prints what is in all memory, if that is known.
void look();

// A kernel, or something else, for calls that take one.
const void *pick_function(std::string *name);
// Arguments for a kernel that writes to device memory; false: there is none.
struct Arguments {
    char *address;
    int count, by;
    void *list[3] = { &address, &count, &by };
};
bool pick_arguments(Arguments *a, std::string *text);

struct Subject {
    void (*begin)(void); // or NULL
    void (*call)(void);
};
extern const Subject device_subject, memory_subject, copy_subject, stream_subject, event_subject, launch_subject, graph_subject,
    array_subject, symbol_subject, pool_subject;
// The device has been reset: nvcc's programs have no address of a managed variable any more.
extern bool was_reset;
// Ends the context with an error, after which all calls give it.
void fault();
