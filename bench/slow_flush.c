/* Preloaded by LD_PRELOAD: each flush of a file takes 2 ms longer, as on a plain disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

static int slow(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    usleep(2000);
    return real(fd);
}

int fsync(int fd) { return slow("fsync", fd); }
int fdatasync(int fd) { return slow("fdatasync", fd); }
