/* Preloaded by LD_PRELOAD: nothing is flushed, to see what all the rest costs. */
int fsync(int fd) { return 0 * fd; }
int fdatasync(int fd) { return 0 * fd; }
