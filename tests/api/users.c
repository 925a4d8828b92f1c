/* Programs of several users on one device, in one server (-M) or in several: all are served, and
 * nothing of one can be opened by another. Takes root, to be several users, and a daemon of root's.
 */
#include "peer.h"

#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)

enum { FIRST = 12345, SECOND };

static struct peer first, second, brother; /* brother: the first user's, too */

/* The daemon starts a user's server as that user, from the tree that this program is in. */
static bool others_reach_this(void)
{
    char path[4096] = "";
    int status = 1;
    if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
        return false;
    pid_t child = fork();
    if (child == 0)
        _exit(setgid(FIRST) || setuid(FIRST) || access(path, X_OK));
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void need_users(void)
{
    if (getuid() != 0)
        tap_skip("only root can be several users");
    if (tap_genuine())
        tap_skip("NVIDIA's driver does not look at users");
    if (!others_reach_this())
        tap_skip("other users cannot reach this folder");
}

static CUdeviceptr memory_of(struct peer *p, size_t size, unsigned value)
{
    struct peer_message m = ASK(*p, .op = PEER_ALLOC, .size = size);
    tap_check_result(__FILE__, __LINE__, "cuMemAlloc in the other process", m.result, CUDA_SUCCESS);
    ASK_OK(*p, .op = PEER_SET, .pointer = m.pointer, .size = size, .value = value);
    ASK_OK(*p, .op = PEER_SYNC);
    return m.pointer;
}

static void all_are_served(void)
{
    struct peer *const peers[] = { &first, &second, &brother };
    CUdeviceptr memory[COUNT(peers)];
    need_users();
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COUNT(peers); i++)
            memory[i] = memory_of(peers[i], 3 * MIB, 10 * round + i);
        for (unsigned i = 0; i < COUNT(peers); i++) {
            EQ(peer_byte(peers[i], memory[i]), 10 * round + i);
            EQ(peer_byte(peers[i], memory[i] + 3 * MIB - 1), 10 * round + i);
            ASK_OK(*peers[i], .op = PEER_FREE, .pointer = memory[i]);
        }
    }
}

static void memory_is_refused(void)
{
    CUdeviceptr q;
    need_users();
    CUdeviceptr p = memory_of(&first, MIB, 7);
    struct peer_message m = ASK(first, .op = PEER_GET_HANDLE, .pointer = p);
    EQ(m.result, CUDA_SUCCESS);
    EQ(ASK(second, .op = PEER_OPEN, .memory = m.memory).result, CUDA_ERROR_INVALID_VALUE);
    IS(cuIpcOpenMemHandle(&q, m.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
       CUDA_ERROR_INVALID_VALUE); /* nor root */
    struct peer_message opened = ASK(brother, .op = PEER_OPEN, .memory = m.memory);
    EQ(opened.result, CUDA_SUCCESS);
    EQ(peer_byte(&brother, opened.pointer), 7);
    EQ(ASK(second, .op = PEER_OPEN, .memory = m.memory).result, CUDA_ERROR_INVALID_VALUE);
    ASK_OK(brother, .op = PEER_CLOSE, .pointer = opened.pointer);
    ASK_OK(first, .op = PEER_FREE, .pointer = p);
}

static void events_are_refused(void)
{
    need_users();
    struct peer_message m = ASK(first, .op = PEER_EVENT);
    EQ(m.result, CUDA_SUCCESS);
    TRUE(ASK(second, .op = PEER_EVENT_OPEN, .event = m.event).result != CUDA_SUCCESS);
    EQ(ASK(brother, .op = PEER_EVENT_OPEN, .event = m.event).result, CUDA_SUCCESS);
    ASK_OK(brother, .op = PEER_EVENT_END);
    ASK_OK(first, .op = PEER_EVENT_END);
}

static void descriptors_are_refused(void)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 }
    };
    CUmemGenericAllocationHandle handle;
    int fd;
    need_users();
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    struct peer_message m = { .op = PEER_IMPORT, .size = 2 * MIB };
    peer_ask_fd(&first, &m, fd); /* root's is not for others either */
    EQ(m.result, CUDA_ERROR_INVALID_VALUE);
    close(fd);
    OK(cuMemRelease(handle));
}

/* An address says nothing in another program. The last test: it may cost that one its context. */
static void addresses_are_refused(void)
{
    need_users();
    CUdeviceptr p = memory_of(&first, MIB, 9);
    TRUE(ASK(second, .op = PEER_GET, .pointer = p).result != CUDA_SUCCESS);
    (void)ASK(second, .op = PEER_SET, .pointer = p, .size = MIB, .value = 1);
    (void)ASK(second, .op = PEER_SYNC);
    EQ(peer_byte(&first, p), 9);
    EQ(peer_byte(&first, p + MIB - 1), 9);
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(all_are_served),          TEST(memory_is_refused),     TEST(events_are_refused),
        TEST(descriptors_are_refused), TEST(addresses_are_refused),
    };
    if (getuid() == 0) {
        peer_start_as(&first, FIRST);
        peer_start_as(&second, SECOND);
        peer_start_as(&brother, FIRST);
    }
    return tap_main(tests, COUNT(tests));
}
