#include "host/sockets/socket_directory.h"

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

#include "base/descriptor.h"

/* Connections that may wait to be accepted: a thousand processes may start at once. The kernel cuts
 * it to net.core.somaxconn. */
enum { BACKLOG = 4096 };

#define COMMAND_SUFFIX ".sock"
#define FOLDER_PREFIX "memlog."

/* How long a host may take from its folder to its socket. */
enum { FOLDER_YOUNG_S = 10 };

/* More than two come of nothing but somebody who plays with us. */
enum { COMMAND_FOLDERS_MAX = 8 };

/* Of the control socket's name. */
enum { SECRET_DIGITS = 32 };

/* The name that a socket is bound to, which /proc/net/unix shows to everybody, and which it loses
 * before anybody may enter its folder. */
#define BOUND_NAME ".new"

/* A listening socket at `path`. It gets that name only when it listens: a bound one that does not
 * yet looks like a dead one to those who clear away. */
static enum ml_status listen_at(
    const char *folder, const char *path, mode_t mode, int *out_fd, struct ml_error_message *error
) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        ml_error_set(error, "cannot make a socket: %s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int count = snprintf(
        address.sun_path, sizeof(address.sun_path), "%s/" BOUND_NAME "%d", folder, (int)getpid()
    );
    if (count < 0 || (size_t)count >= sizeof(address.sun_path) ||
        strlen(path) >= sizeof(address.sun_path)) {
        ml_error_set(error, "%s: the path is too long for a socket", path);
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
        ml_error_set(error, "%s: %s", path, strerror(errno));
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
        int error_number = errno;
        (void)close(fd);
        errno = error_number;
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
        int fd = openat(
            dirfd(directory), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        );
        DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
        if (folder == NULL) {
            ml_descriptor_close(&fd);
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
make_folder(struct ml_socket_directory *directory, struct ml_error_message *error) {
    /* /tmp first: the user's own runtime folder is closed to workers that became another user. */
    const char *bases[] = {"/tmp", getenv("XDG_RUNTIME_DIR")};
    uint64_t random[3] = {0};
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        ml_error_set(error, "cannot draw random numbers: %s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    for (size_t i = 0; i < 2; i++) {
        char folder[ML_SOCKET_DIRECTORY_PATH_BYTES];
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
        (void)snprintf(directory->folder, sizeof(directory->folder), "%s", folder);
        (void)snprintf(
            directory->client_path,
            sizeof(directory->client_path),
            "%.74s/%016llx%016llx",
            folder,
            (unsigned long long)random[1],
            (unsigned long long)random[2]
        );
        return ML_OK;
    }
    ml_error_set(error, "cannot make a folder in /tmp: %s", strerror(errno));
    return ML_ENV_SYSTEM;
}

/* A folder that is this user's alone, and no link. */
static bool is_own_folder(const char *path) {
    struct stat facts;
    return lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
           (facts.st_mode & 077) == 0;
}

/* Room for a name of 16 digits, a pid and the suffix. */
enum { COMMAND_FOLDER_BYTES = ML_SOCKET_DIRECTORY_PATH_BYTES - 42 };

/* Where command sockets may lie. */
struct command_folders {
    char paths[COMMAND_FOLDERS_MAX][COMMAND_FOLDER_BYTES];
    uint32_t count;
};

/* Only one that is this user's own. */
static void add_folder(struct command_folders *folders, const char *path) {
    if (folders->count < COMMAND_FOLDERS_MAX && strlen(path) < COMMAND_FOLDER_BYTES &&
        is_own_folder(path)) {
        (void)snprintf(folders->paths[folders->count++], COMMAND_FOLDER_BYTES, "%s", path);
    }
}

static void make_and_add_folder(struct command_folders *folders, const char *path) {
    if (mkdir(path, 0700) == 0 || errno == EEXIST) {
        add_folder(folders, path);
    }
}

/* /tmp/memlog-UID.HEX, of this user: made where somebody else has taken /tmp/memlog-UID. In /tmp
 * nobody can make one that is ours. */
static void add_random_folders(struct command_folders *folders, const char *plain) {
    DIR *directory = opendir("/tmp");
    const char *name = strrchr(plain, '/') + 1;
    const size_t count = strlen(name);
    if (directory == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char path[PATH_MAX];
        if (strncmp(entry->d_name, name, count) == 0 && entry->d_name[count] == '.') {
            (void)snprintf(path, sizeof(path), "/tmp/%s", entry->d_name);
            add_folder(folders, path);
        }
    }
    (void)closedir(directory);
}

/* All that there are, the one for a new host first: that of the user's runtime folder alone, or
 * those in /tmp. `make`: one at least. */
static void find_folders(struct command_folders *folders, bool make) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char path[PATH_MAX];
    struct stat facts;
    folders->count = 0;
    if (runtime != NULL && runtime[0] == '/' && stat(runtime, &facts) == 0 &&
        facts.st_uid == geteuid()) {
        (void)snprintf(path, sizeof(path), "%.1024s/memlog", runtime);
        make_and_add_folder(folders, path);
    }
    if (folders->count > 0) {
        return;
    }
    (void)snprintf(path, sizeof(path), "/tmp/memlog-%u", (unsigned)geteuid());
    make_and_add_folder(folders, path);
    add_random_folders(folders, path);
    uint64_t random = 0;
    if (folders->count == 0 && make &&
        getrandom(&random, sizeof(random), 0) == (ssize_t)sizeof(random)) {
        const size_t count = strlen(path);
        (void)snprintf(path + count, sizeof(path) - count, ".%016llx", (unsigned long long)random);
        make_and_add_folder(folders, path);
    }
}

enum ml_status ml_socket_directory_open(
    struct ml_socket_directory *out_directory, struct ml_error_message *error
) {
    struct ml_socket_directory *directory = out_directory;
    *directory = (struct ml_socket_directory){.client_fd = -1, .command_fd = -1, .owner = getpid()};
    struct command_folders folders = {.count = 0};
    enum ml_status status = make_folder(directory, error);
    if (status == ML_OK) {
        status = listen_at(
            directory->folder, directory->client_path, 0777, &directory->client_fd, error
        );
    }
    /* From here on others may walk through it, none may list it. */
    if (status == ML_OK && chmod(directory->folder, 0711) != 0) {
        ml_error_set(error, "%s: %s", directory->folder, strerror(errno));
        status = ML_ENV_SYSTEM;
    }
    if (status == ML_OK) {
        find_folders(&folders, true);
    }
    if (status == ML_OK && folders.count == 0) {
        ml_error_set(error, "cannot make a folder for sockets in /tmp: %s", strerror(errno));
        status = ML_ENV_SYSTEM;
    }
    if (status == ML_OK) {
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        /* Names in the order of their starts, so that the newest is the last. */
        unsigned long long started_us =
            (unsigned long long)now.tv_sec * 1000000ULL + (unsigned long long)now.tv_nsec / 1000ULL;
        (void)snprintf(
            directory->command_path,
            sizeof(directory->command_path),
            "%s/%016llu-%d" COMMAND_SUFFIX,
            folders.paths[0],
            started_us,
            (int)getpid()
        );
        status = listen_at(
            folders.paths[0], directory->command_path, 0600, &directory->command_fd, error
        );
    }
    if (status != ML_OK) {
        ml_socket_directory_close(directory);
    }
    return status;
}

void ml_socket_directory_close(struct ml_socket_directory *directory) {
    char *const paths[] = {
        directory->client_path, directory->alias_path, directory->command_path, directory->folder};
    ml_descriptor_close(&directory->client_fd);
    ml_descriptor_close(&directory->command_fd);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && directory->owner == getpid(); i++) {
        if (paths[i][0] != '\0') {
            (void)remove(paths[i]); /* the folder last, when nothing is in it */
            paths[i][0] = '\0';
        }
    }
}

enum ml_status ml_socket_directory_alias(
    struct ml_socket_directory *directory, const char *target, struct ml_error_message *error
) {
    (void)snprintf(
        directory->alias_path,
        sizeof(directory->alias_path),
        "%.90s/libmemlog.so",
        directory->folder
    );
    if (symlink(target, directory->alias_path) != 0) {
        ml_error_set(error, "%s: %s", directory->alias_path, strerror(errno));
        directory->alias_path[0] = '\0';
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

static uint32_t others_in(const char *folder) {
    struct dirent **entries = NULL;
    uint32_t others = 0;
    const int count = scandir(folder, &entries, is_command_socket, NULL);
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

uint32_t ml_socket_directory_others(void) {
    struct command_folders folders;
    uint32_t others = 0;
    find_folders(&folders, false);
    for (uint32_t i = 0; i < folders.count; i++) {
        others += others_in(folders.paths[i]);
    }
    return others;
}

/* Remove the sockets that hosts which were killed had bound and not yet named: nobody can tell them
 * from one that is just being made, but by their host's pid and their age. */
static void clear_unnamed(const char *folder_path) {
    DIR *folder = opendir(folder_path);
    if (folder == NULL) {
        return;
    }
    const time_t now = time(NULL);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        struct stat facts;
        int pid = 0;
        if (sscanf(entry->d_name, BOUND_NAME "%d", &pid) == 1 && pid > 0 && kill(pid, 0) != 0 &&
            errno == ESRCH &&
            fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISSOCK(facts.st_mode) && facts.st_mtime < now) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    (void)closedir(folder);
}

/* The newest that answers in that folder, if it is newer than `newest`, the name of which it then
 * takes the place of, as its socket that of *fd. */
static void connect_newest_in(const char *folder, char newest[NAME_MAX + 1], int *fd) {
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_command_socket, alphasort);
    bool is_found = false;
    for (int i = count - 1; i >= 0; i--) {
        char path[ML_SOCKET_DIRECTORY_PATH_BYTES + NAME_MAX + 2];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (!is_found && strcmp(entries[i]->d_name, newest) > 0) {
            const int found_fd = connect_at(path);
            if (found_fd >= 0) {
                is_found = true;
                ml_descriptor_close(fd);
                *fd = found_fd;
                (void)snprintf(newest, NAME_MAX + 1, "%s", entries[i]->d_name);
            } else if (errno == ECONNREFUSED) {
                (void)unlink(path); /* its host was killed */
            }
        }
        free(entries[i]);
    }
    free(entries);
}

/* Names begin with the time of the start; folders differ. */
static int newest_first(const void *a, const void *b) {
    const struct ml_command_socket *left = a;
    const struct ml_command_socket *right = b;
    return strcmp(strrchr(right->path, '/'), strrchr(left->path, '/'));
}

/* Add those of one folder to the list. Returns the new count. */
static size_t list_in(const char *folder, struct ml_command_socket **sockets, size_t count) {
    struct dirent **entries = NULL;
    const int found = scandir(folder, &entries, is_command_socket, NULL);
    struct ml_command_socket *grown =
        found > 0 ? reallocarray(*sockets, count + (size_t)found, sizeof(*grown)) : NULL;
    *sockets = grown != NULL ? grown : *sockets;
    for (int i = 0; i < found; i++) {
        char path[COMMAND_FOLDER_BYTES + NAME_MAX + 2];
        const int bytes = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (grown != NULL && bytes > 0 && bytes < ML_SOCKET_DIRECTORY_PATH_BYTES) {
            memcpy(grown[count++].path, path, (size_t)bytes + 1);
        }
        free(entries[i]);
    }
    free(entries);
    return count;
}

size_t ml_socket_directory_list(struct ml_command_socket **out_sockets) {
    struct command_folders folders;
    size_t count = 0;
    *out_sockets = NULL;
    find_folders(&folders, false);
    for (uint32_t i = 0; i < folders.count; i++) {
        count = list_in(folders.paths[i], out_sockets, count);
    }
    if (count > 0) {
        qsort(*out_sockets, count, sizeof(**out_sockets), newest_first);
    }
    return count;
}

static enum ml_status connect_newest(int *out_fd, struct ml_error_message *error) {
    struct command_folders folders;
    char newest[NAME_MAX + 1] = "";
    int fd = -1;
    find_folders(&folders, false);
    for (uint32_t i = 0; i < folders.count; i++) {
        connect_newest_in(folders.paths[i], newest, &fd);
        clear_unnamed(folders.paths[i]);
    }
    if (fd < 0) {
        ml_error_set(
            error,
            "no memlog of this user runs (none listens in %s); 'memlog run -- PROGRAM' starts one",
            folders.count > 0 ? folders.paths[0] : "/tmp"
        );
        return ML_ENV_MISSING;
    }
    *out_fd = fd;
    return ML_OK;
}

enum ml_status
ml_socket_directory_connect(const char *path, int *out_fd, struct ml_error_message *error) {
    if (path == NULL) {
        return connect_newest(out_fd, error);
    }
    int fd = connect_at(path);
    if (fd < 0) {
        const bool stands_still = errno == EAGAIN;
        ml_error_set(error, "%s: %s", path, strerror(errno));
        return stands_still ? ML_ENV_AGAIN : ML_ENV_MISSING;
    }
    *out_fd = fd;
    return ML_OK;
}
