#include "tools/analyzer/helpers/rooted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* As many links as the kernel follows, and folders deeper than any path. */
enum { LINKS_MAX = 40, FOLDERS_MAX = 256 };

enum { PLACE_FLAGS = O_PATH | O_NOFOLLOW | O_CLOEXEC };

/* Where a walk stands: the folders from the root to here, each of them open. */
struct walk {
    int folders[FOLDERS_MAX];
    size_t count;
    unsigned links;
    char left[2 * PATH_MAX]; /* of the path */
};

static void close_to(struct walk *walk, size_t count) {
    while (walk->count > count) {
        close(walk->folders[--walk->count]);
    }
}

/* A link's text comes in front of what is left. False: there are too many, or it is too long. */
static bool follow(struct walk *walk, int take_link_fd, const char *rest) {
    char text[2 * PATH_MAX];
    ssize_t count = readlinkat(take_link_fd, "", text, PATH_MAX);
    size_t rest_bytes = strlen(rest) + 1;

    close(take_link_fd);
    if (count <= 0 || count >= PATH_MAX || ++walk->links > LINKS_MAX ||
        (size_t)count + 1 + rest_bytes > sizeof text) {
        errno = ELOOP;
        return false;
    }
    text[count] = '/';
    memcpy(text + count + 1, rest, rest_bytes);
    if (text[0] == '/') {
        close_to(walk, 1);
    }
    memcpy(walk->left, text, (size_t)count + 1 + rest_bytes);
    return true;
}

/* Into the next component, in front of `rest`. */
static bool step(struct walk *walk, const char *name, const char *rest) {
    struct stat status;
    char *kept = NULL;
    bool done = false;
    int fd = -1;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        close_to(walk, name[1] && walk->count > 1 ? walk->count - 1 : walk->count);
        memmove(walk->left, rest, strlen(rest) + 1);
        return true;
    }
    fd = openat(walk->folders[walk->count - 1], name, PLACE_FLAGS);
    if (fd < 0 || fstat(fd, &status) != 0 || walk->count == FOLDERS_MAX) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    if (S_ISLNK(status.st_mode)) {
        kept = strdup(rest);
        done = kept && follow(walk, fd, kept);
        free(kept);
        return done;
    }
    walk->folders[walk->count++] = fd;
    memmove(walk->left, rest, strlen(rest) + 1);
    return true;
}

int ml_rooted_walk(int root_fd, const char *path) {
    struct walk walk = {.folders = {fcntl(root_fd, F_DUPFD_CLOEXEC, 0)}, .count = 1};
    bool goes_on = walk.folders[0] >= 0 && strlen(path) < PATH_MAX;
    int fd = -1;

    if (goes_on) {
        memcpy(walk.left, path, strlen(path) + 1);
    }
    while (goes_on && walk.left[strspn(walk.left, "/")] != '\0') {
        char name[NAME_MAX + 1];
        const char *at = walk.left + strspn(walk.left, "/");
        size_t count = strcspn(at, "/");

        goes_on = count <= NAME_MAX;
        if (goes_on) {
            memcpy(name, at, count);
            name[count] = '\0';
            goes_on = step(&walk, name, at + count);
        }
    }
    if (goes_on) {
        fd = walk.folders[--walk.count];
    }
    close_to(&walk, 0);
    return fd;
}

int ml_rooted_open(int root_fd, const char *path) {
    const struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);

    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN)) {
        return ml_rooted_walk(root_fd, path);
    }
    return fd;
}

/* Where its user namespace is another one than ours, that of whoever made it is entered first: we
 * have its rights there if we are its maker. */
static bool enter(int space_fd) {
    int user_fd = -1;

    if (setns(space_fd, CLONE_NEWNS) == 0) {
        return true;
    }
    user_fd = ioctl(space_fd, NS_GET_USERNS);
    return user_fd >= 0 && setns(user_fd, CLONE_NEWUSER) == 0 && setns(space_fd, CLONE_NEWNS) == 0;
}

int ml_rooted_top(int space_fd) {
    /* A number that the child, which shares the table of descriptors, lets mean the folder. */
    int fd = fcntl(space_fd, F_DUPFD_CLOEXEC, 0);
    pid_t child = fd >= 0 ? (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0) : -1;
    int status = -1;

    if (child == 0) {
        int top_fd = -1;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        top_fd = enter(space_fd) ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        _exit(top_fd >= 0 && dup3(top_fd, fd, O_CLOEXEC) == fd && close(top_fd) == 0 ? 0 : 1);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0 && fd >= 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int ml_rooted_read(int take_place_fd) {
    char path[sizeof "/proc/self/fd/2147483647"];
    struct stat status;
    int fd = -1;

    if (take_place_fd < 0) {
        return -1;
    }
    if (fstat(take_place_fd, &status) == 0 && S_ISREG(status.st_mode)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", take_place_fd);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    close(take_place_fd);
    return fd;
}
