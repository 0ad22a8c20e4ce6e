/* Loaded before the C library: half of the writes and reads of several blocks move only the first half of their
 * blocks, and every seventh call is interrupted before it moves anything. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

static __thread unsigned calls;

/* The number of bytes to move; -1 for an interruption. */
static ssize_t shortened(size_t length)
{
    calls++;
    if (calls % 7 == 0) {
        errno = EINTR;
        return -1;
    }
    /* Direct calls move whole blocks. A read of no bytes would be the end of the file. */
    size_t half = length / 2 & ~(size_t)4095;
    return calls % 2 == 0 && half > 0 ? (ssize_t)half : (ssize_t)length;
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset)
{
    ssize_t (*next)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    ssize_t count = shortened(length);
    return count < 0 ? -1 : next(file, bytes, (size_t)count, offset);
}

ssize_t pread64(int file, void *bytes, size_t length, off64_t offset)
{
    ssize_t (*next)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    ssize_t count = shortened(length);
    return count < 0 ? -1 : next(file, bytes, (size_t)count, offset);
}
