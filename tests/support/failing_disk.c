// A disk that fails beneath Python: `LD_PRELOAD` puts these functions before the C library's.
//
// `fail_at(folder, log, number, error, lasting)` counts the operations below a folder from 0, and has the one with this
// number fail with this errno; with `lasting` also all later ones that need space. Each operation is a line of `log`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

static char folder[PATH_MAX];
static atomic_long count;
static long number = -1;
static int error, lasting, log_fd = -1;

void fail_at(const char *where, const char *log, long at, int with, int last) {
    log_fd = REAL(open)(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    number = at, error = with, lasting = last, count = 0;
    strncpy(folder, where, sizeof folder - 1);
}

static int fails(const char *call, const char *path, int needs_space) {
    if (!folder[0] || strncmp(path, folder, strlen(folder)) != 0) return 0;
    long mine = atomic_fetch_add(&count, 1);
    int now = mine == number || (lasting && needs_space && number >= 0 && mine > number);
    dprintf(log_fd, "%ld %s %s%s\n", mine, call, path + strlen(folder), now ? " FAILS" : "");
    if (now) errno = error;
    return now;
}

static int fails_fd(const char *call, int fd, int needs_space) {
    char link[64], path[PATH_MAX] = "";
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return length > 0 && fails(call, path, needs_space);
}

static int fails_at(const char *call, int dir, const char *name, int needs_space) {
    char link[64], path[PATH_MAX * 2] = "";
    if (!folder[0]) return 0;
    if (name[0] != '/') {
        if (dir == AT_FDCWD) {
            if (!getcwd(path, PATH_MAX)) return 0;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
            if (readlink(link, path, PATH_MAX - 1) < 0) return 0;
        }
        strcat(path, "/");
    }
    strncat(path, name, PATH_MAX - 1);
    return fails(call, path, needs_space);
}

ssize_t write(int fd, const void *data, size_t size) {
    if (!fails_fd("write", fd, 1)) return REAL(write)(fd, data, size);
    REAL(write)(fd, data, size / 2);  // a part is on the device
    errno = error;
    return -1;
}
ssize_t writev(int fd, const struct iovec *data, int parts) {
    return fails_fd("write", fd, 1) ? -1 : REAL(writev)(fd, data, parts);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return fails_fd("write", fd, 1) ? -1 : REAL(pwrite64)(fd, data, size, at);
}
int fsync(int fd) { return fails_fd("fsync", fd, 1) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails_fd("fsync", fd, 1) ? -1 : REAL(fdatasync)(fd); }
int ftruncate64(int fd, off64_t size) { return fails_fd("truncate", fd, 0) ? -1 : REAL(ftruncate64)(fd, size); }
int rename(const char *from, const char *to) {
    return fails_at("rename", AT_FDCWD, from, 0) ? -1 : REAL(rename)(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
    return fails_at("rename", a, from, 0) ? -1 : REAL(renameat)(a, from, b, to);
}
int mkdir(const char *path, mode_t mode) {
    return fails_at("mkdir", AT_FDCWD, path, 1) ? -1 : REAL(mkdir)(path, mode);
}
int unlink(const char *path) { return fails_at("unlink", AT_FDCWD, path, 0) ? -1 : REAL(unlink)(path); }
int unlinkat(int dir, const char *path, int flags) {
    return fails_at("unlink", dir, path, 0) ? -1 : REAL(unlinkat)(dir, path, flags);
}
int rmdir(const char *path) { return fails_at("unlink", AT_FDCWD, path, 0) ? -1 : REAL(rmdir)(path); }

#define OPEN(name)                                                                    \
    int name(const char *path, int flags, ...) {                                      \
        va_list rest;                                                                 \
        va_start(rest, flags);                                                        \
        mode_t mode = va_arg(rest, mode_t);                                           \
        va_end(rest);                                                                 \
        if ((flags & (O_WRONLY | O_RDWR)) && fails_at("open", AT_FDCWD, path, flags & O_CREAT)) return -1; \
        return REAL(name)(path, flags, mode);                                         \
    }
OPEN(open)
OPEN(open64)
