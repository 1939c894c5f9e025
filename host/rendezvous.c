#include "host/rendezvous.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Connections that may wait to be accepted: a thousand processes may start at once. The kernel cuts
 * it to net.core.somaxconn. */
enum { BACKLOG = 4096 };

#define COMMAND_SUFFIX ".sock"
#define FOLDER_PREFIX "memlog."

/* How long a host may take from its folder to its socket. */
enum { FOLDER_YOUNG_S = 10 };

/* Of the control socket's name. */
enum { SECRET_DIGITS = 32 };

/* The name that a socket is bound to, which /proc/net/unix shows to everybody, and which it loses
 * before anybody may enter its folder. */
#define BOUND_NAME ".new"

/* A listening socket at `path`. It gets that name only when it listens: a bound one that does not
 * yet looks like a dead one to those who clear away. */
static enum ml_status listen_at(
    const char *folder, const char *path, mode_t mode, int *out_fd, struct ml_complaint *complaint
) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        ml_complain(complaint, "cannot make a socket: %s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int count = snprintf(
        address.sun_path, sizeof(address.sun_path), "%s/" BOUND_NAME "%d", folder, (int)getpid()
    );
    if (count < 0 || (size_t)count >= sizeof(address.sun_path) ||
        strlen(path) >= sizeof(address.sun_path)) {
        ml_complain(complaint, "%s: the path is too long for a socket", path);
        (void)close(fd);
        return ML_ENV_REFUSED;
    }
    /* Before anybody can connect: else a first packet would come without its sender's name. */
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, ML_SO_PASSPIDFD, &on, sizeof(on)); /* where there is one */
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(address.sun_path, mode) != 0 || listen(fd, BACKLOG) != 0 ||
        rename(address.sun_path, path) != 0) {
        ml_complain(complaint, "%s: %s", path, strerror(errno));
        (void)unlink(address.sun_path);
        (void)close(fd);
        return ML_ENV_SYSTEM;
    }
    *out_fd = fd;
    return ML_OK;
}

/* Connect, without waiting for a host that stands still and whose queue is full: -1 and EAGAIN
 * then, another errno if it cannot for another reason. What is connected waits as others do. */
static int connect_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
                    fcntl(fd, F_SETFL, 0) != 0)) {
        int error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* memlog.PID.HEX, as make_folder names them. */
static bool is_folder_name(const char *name) {
    int end = 0;
    return sscanf(name, FOLDER_PREFIX "%*u.%*16[0-9a-f]%n", &end) == 0 && end > 0 &&
           name[end] == '\0';
}

/* Whether nobody listens at any socket of a folder. */
static bool is_dead(DIR *folder, const char *path) {
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char socket_path[PATH_MAX];
        struct stat facts;
        if (fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISSOCK(facts.st_mode)) {
            continue;
        }
        (void)snprintf(socket_path, sizeof(socket_path), "%.1024s/%s", path, entry->d_name);
        const int fd = connect_at(socket_path);
        if (fd >= 0) {
            (void)close(fd);
            return false;
        }
        if (errno != ECONNREFUSED && errno != ENOENT) {
            return false;
        }
    }
    return true;
}

/* Take out what a host has made in it. */
static void empty(DIR *folder) {
    rewinddir(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        struct stat facts;
        if (fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            (S_ISSOCK(facts.st_mode) || S_ISLNK(facts.st_mode))) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
}

/* Remove the folders of this user's hosts that were killed: nobody listens in them. Young ones are
 * left alone, a host may just be making its socket. */
static void clear_dead_folders(const char *base) {
    DIR *directory = opendir(base);
    if (directory == NULL) {
        return;
    }
    time_t now = time(NULL);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char path[PATH_MAX];
        struct stat facts;
        if (!is_folder_name(entry->d_name)) {
            continue;
        }
        const int fd = openat(
            dirfd(directory), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        );
        DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
        if (folder == NULL) {
            if (fd >= 0) {
                (void)close(fd);
            }
            continue;
        }
        (void)snprintf(path, sizeof(path), "%.1024s/%s", base, entry->d_name);
        if (fstat(fd, &facts) == 0 && facts.st_uid == geteuid() &&
            facts.st_mtime + FOLDER_YOUNG_S <= now && is_dead(folder, path)) {
            empty(folder);
            (void)rmdir(path); /* refuses when something else is in it */
        }
        (void)closedir(folder);
    }
    (void)closedir(directory);
}

/* A new folder, closed as yet, and the path of the control socket in it. That one's name is what
 * makes a process one of the run: 128 random bits in a folder that others cannot list. */
static enum ml_status
make_folder(struct ml_rendezvous *rendezvous, struct ml_complaint *complaint) {
    /* /tmp first: the user's own runtime folder is closed to workers that became another user. */
    const char *bases[] = {"/tmp", getenv("XDG_RUNTIME_DIR")};
    uint64_t random[3] = {0};
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        ml_complain(complaint, "cannot draw random numbers: %s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    for (size_t i = 0; i < 2; i++) {
        char folder[ML_RENDEZVOUS_PATH_BYTES];
        if (bases[i] == NULL || bases[i][0] != '/') {
            continue;
        }
        const int count = snprintf(
            folder,
            sizeof(folder),
            "%s/" FOLDER_PREFIX "%d.%016llx",
            bases[i],
            (int)getpid(),
            (unsigned long long)random[0]
        );
        /* Before there is one of ours: where that takes long, others would take it for dead. */
        clear_dead_folders(bases[i]);
        /* Room for the names behind it. */
        if (count < 0 || (size_t)count + 1 + SECRET_DIGITS >= sizeof(folder) ||
            mkdir(folder, 0700) != 0) {
            continue;
        }
        (void)snprintf(rendezvous->folder, sizeof(rendezvous->folder), "%s", folder);
        (void)snprintf(
            rendezvous->client_path,
            sizeof(rendezvous->client_path),
            "%.74s/%016llx%016llx",
            folder,
            (unsigned long long)random[1],
            (unsigned long long)random[2]
        );
        return ML_OK;
    }
    ml_complain(complaint, "cannot make a folder in /tmp: %s", strerror(errno));
    return ML_ENV_SYSTEM;
}

/* The user's own folder for command sockets, made if it is not there. */
static enum ml_status
command_folder(char out_folder[ML_RENDEZVOUS_PATH_BYTES], struct ml_complaint *complaint) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct stat facts;
    int count = -1;
    if (runtime != NULL && runtime[0] == '/' && stat(runtime, &facts) == 0 &&
        facts.st_uid == geteuid()) {
        count = snprintf(out_folder, ML_RENDEZVOUS_PATH_BYTES, "%s/memlog", runtime);
    }
    /* Room for a name of 16 digits, a pid and the suffix. */
    if (count < 0 || count > ML_RENDEZVOUS_PATH_BYTES - 42) {
        (void)snprintf(out_folder, ML_RENDEZVOUS_PATH_BYTES, "/tmp/memlog-%u", (unsigned)geteuid());
    }
    if (mkdir(out_folder, 0700) != 0 && errno != EEXIST) {
        ml_complain(complaint, "cannot make the folder %s: %s", out_folder, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    if (lstat(out_folder, &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() ||
        (facts.st_mode & 077) != 0) {
        ml_complain(complaint, "%s is not a folder of this user alone", out_folder);
        return ML_ENV_REFUSED;
    }
    return ML_OK;
}

enum ml_status
ml_rendezvous_open(struct ml_rendezvous *out_rendezvous, struct ml_complaint *complaint) {
    struct ml_rendezvous *rendezvous = out_rendezvous;
    *rendezvous = (struct ml_rendezvous){.client_fd = -1, .command_fd = -1, .owner = getpid()};
    char folder[ML_RENDEZVOUS_PATH_BYTES];
    enum ml_status status = make_folder(rendezvous, complaint);
    if (status == ML_OK) {
        status = listen_at(
            rendezvous->folder, rendezvous->client_path, 0777, &rendezvous->client_fd, complaint
        );
    }
    /* From here on others may walk through it, none may list it. */
    if (status == ML_OK && chmod(rendezvous->folder, 0711) != 0) {
        ml_complain(complaint, "%s: %s", rendezvous->folder, strerror(errno));
        status = ML_ENV_SYSTEM;
    }
    if (status == ML_OK) {
        status = command_folder(folder, complaint);
    }
    if (status == ML_OK) {
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        /* Names in the order of their starts, so that the newest is the last. */
        unsigned long long started_us =
            (unsigned long long)now.tv_sec * 1000000ULL + (unsigned long long)now.tv_nsec / 1000ULL;
        (void)snprintf(
            rendezvous->command_path,
            sizeof(rendezvous->command_path),
            "%.66s/%016llu-%d" COMMAND_SUFFIX,
            folder,
            started_us,
            (int)getpid()
        );
        status =
            listen_at(folder, rendezvous->command_path, 0600, &rendezvous->command_fd, complaint);
    }
    if (status != ML_OK) {
        ml_rendezvous_close(rendezvous);
    }
    return status;
}

void ml_rendezvous_close(struct ml_rendezvous *rendezvous) {
    if (rendezvous->client_fd >= 0) {
        (void)close(rendezvous->client_fd);
        rendezvous->client_fd = -1;
    }
    if (rendezvous->command_fd >= 0) {
        (void)close(rendezvous->command_fd);
        rendezvous->command_fd = -1;
    }
    if (rendezvous->owner != getpid()) {
        return;
    }
    if (rendezvous->client_path[0] != '\0') {
        (void)unlink(rendezvous->client_path);
    }
    if (rendezvous->alias_path[0] != '\0') {
        (void)unlink(rendezvous->alias_path);
        rendezvous->alias_path[0] = '\0';
    }
    if (rendezvous->folder[0] != '\0') {
        (void)rmdir(rendezvous->folder);
    }
    if (rendezvous->command_path[0] != '\0') {
        (void)unlink(rendezvous->command_path);
    }
    rendezvous->client_path[0] = '\0';
    rendezvous->folder[0] = '\0';
    rendezvous->command_path[0] = '\0';
}

enum ml_status ml_rendezvous_alias(
    struct ml_rendezvous *rendezvous, const char *target, struct ml_complaint *complaint
) {
    (void)snprintf(
        rendezvous->alias_path,
        sizeof(rendezvous->alias_path),
        "%.90s/libmemlog.so",
        rendezvous->folder
    );
    if (symlink(target, rendezvous->alias_path) != 0) {
        ml_complain(complaint, "%s: %s", rendezvous->alias_path, strerror(errno));
        rendezvous->alias_path[0] = '\0';
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

static int is_command_socket(const struct dirent *entry) {
    size_t count = strlen(entry->d_name);
    size_t suffix_count = strlen(COMMAND_SUFFIX);
    return count > suffix_count &&
           strcmp(entry->d_name + count - suffix_count, COMMAND_SUFFIX) == 0;
}

uint32_t ml_rendezvous_others(void) {
    char folder[ML_RENDEZVOUS_PATH_BYTES];
    struct ml_complaint complaint = {.text = ""};
    struct dirent **entries = NULL;
    uint32_t others = 0;
    const int count = command_folder(folder, &complaint) == ML_OK
                          ? scandir(folder, &entries, is_command_socket, NULL)
                          : 0;
    for (int i = 0; i < count; i++) {
        int pid = 0;
        if (sscanf(entries[i]->d_name, "%*16u-%d", &pid) == 1 && pid > 0 && pid != getpid() &&
            (kill(pid, 0) == 0 || errno == EPERM)) {
            others++;
        }
        free(entries[i]);
    }
    free(entries);
    return others;
}

static enum ml_status connect_newest(int *out_fd, struct ml_complaint *complaint) {
    char folder[ML_RENDEZVOUS_PATH_BYTES];
    enum ml_status status = command_folder(folder, complaint);
    if (status != ML_OK) {
        return status;
    }
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_command_socket, alphasort);
    int fd = -1;
    for (int i = count - 1; i >= 0; i--) {
        char path[ML_RENDEZVOUS_PATH_BYTES + NAME_MAX + 2];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (fd < 0) {
            fd = connect_at(path);
            if (fd < 0 && errno == ECONNREFUSED) {
                (void)unlink(path); /* its host was killed */
            }
        }
        free(entries[i]);
    }
    free(entries);
    if (fd < 0) {
        ml_complain(
            complaint,
            "no memlog of this user runs (none listens in %s); 'memlog run -- PROGRAM' starts one",
            folder
        );
        return ML_ENV_MISSING;
    }
    *out_fd = fd;
    return ML_OK;
}

enum ml_status
ml_rendezvous_connect(const char *path, int *out_fd, struct ml_complaint *complaint) {
    if (path == NULL) {
        return connect_newest(out_fd, complaint);
    }
    int fd = connect_at(path);
    if (fd < 0) {
        ml_complain(complaint, "%s: %s", path, strerror(errno));
        return ML_ENV_MISSING;
    }
    *out_fd = fd;
    return ML_OK;
}
