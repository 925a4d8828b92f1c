/*
 * Shared memory by descriptor: sealed memfds. No names, nothing in /dev/shm, gone with the last
 * holder.
 */
#ifndef GMUX_TRANSPORT_MEMFD_H
#define GMUX_TRANSPORT_MEMFD_H

#include "base/attr.h"

/* For processes of ours, whose files in memory are as large as devices: no limit of file sizes, or
 * the highest that there may be; a file that is too large all the same is an error and no signal.
 * Before the first thread. */
void tp_files_of_any_size(void);

/* A memfd of `size` bytes, zeroed, that can neither shrink nor grow. Descriptor owned by the
 * caller, or -errno: -EFBIG beyond the limit of file sizes (RLIMIT_FSIZE), without its signal. */
GM_MUST_CHECK int tp_memfd_create(const char *name, uint64_t size);

/* Like tp_memfd_create(), with these bytes in it, and sealed against writing as well. */
GM_MUST_CHECK int tp_memfd_from_bytes(const char *name, const void *data, size_t size);

/* A memfd of `size` bytes, zeroed, that can neither shrink nor grow, and that nobody can write but
 * by
 * `*bytes`, where it is mapped. Descriptor owned by the caller, or -errno. */
GM_MUST_CHECK int tp_memfd_create_for_readers(const char *name, size_t size, void **bytes);

/* 0 if `fd` is a memfd of exactly `size` bytes that cannot shrink or grow (and, with `readonly`,
 * cannot be written by anybody), so that mapping it is safe: -EBADMSG if not. */
GM_MUST_CHECK int tp_memfd_check(int fd, uint64_t size, bool readonly);

/* 0 if `fd` is a memfd of at least `offset` + `size` bytes that cannot shrink and cannot be mapped
 * for writing: -EBADMSG if not. */
GM_MUST_CHECK int tp_memfd_check_extent(int fd, uint64_t offset, uint64_t size);

/* Maps a whole memfd at an address of the kernel's choice; NULL on failure with errno set. Unmap
 * with munmap. */
void *tp_memfd_map(int fd, size_t size, bool writable);

/* Reads so many bytes; false: there are fewer, or they cannot be read. */
GM_MUST_CHECK bool tp_read_at(int fd, uint64_t offset, void *to, size_t size);

/* A shared mapping of a part of one, for reading, whose bytes stay as they are: if somebody may
 * still write the file, it is a copy. `offset` is a multiple of the page size. NULL on failure with
 * errno set. */
void *tp_memfd_map_extent(int fd, uint64_t offset, size_t size);

#endif
