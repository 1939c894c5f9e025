#include "client/startup/exec_preload.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/startup/handshake.h"
#include "client/startup/lending.h"
#include "client/state/decimal.h"
#include "client/state/process.h"
#include "client/state/sys.h"
#include "client/unwind/foreign.h"

enum {
    SCRIPT_DEPTH_MAX = 4, /* the kernel's own bound on #! scripts that run scripts */
    HEAD_BYTES = 1024,
    INTERPRETER_MAX_BYTES = 256
};

static const char socket_key[] = "MEMLOG_SOCKET=";
static const char preload_key[] = "LD_PRELOAD=";
static const char path_key[] = "PATH=";

static char socket_entry[ML_EXEC_PRELOAD_SOCKET_MAX_BYTES]; /* with nothing in front of the path */
static int left_fd = -1;        /* the connection of the image before this one */
static char library[4096];      /* as LD_PRELOAD names it */
static char library_file[4096]; /* as the kernel does */

static bool starts_with(const char *text, const char *key, size_t key_bytes) {
    return strncmp(text, key, key_bytes - 1) == 0;
}

/* glibc's loaders replace this by their platform's name. The library is also there under the
 * kernel's name for the platform. */
static void name_library_file(void) {
    static const char token[] = "$PLATFORM";
    static const char platform[] = "x86_64";
    const char *found = strstr(library, token);
    const size_t before = found != NULL ? (size_t)(found - library) : strlen(library);
    memcpy(library_file, library, before);
    library_file[before] = 0;
    if (found != NULL) { /* the platform's name is the shorter one */
        memcpy(library_file + before, platform, sizeof(platform) - 1);
        const char *rest = found + sizeof(token) - 1;
        memcpy(library_file + before + sizeof(platform) - 1, rest, strlen(rest) + 1);
    }
}

/* Take our library, the first entry, out of LD_PRELOAD=ours[:others]. True when others are left. */
static bool take_preload(char *entry) {
    char *value = entry + sizeof(preload_key) - 1;
    const size_t length = strcspn(value, ": ");
    if (length >= sizeof(library) || strstr(value, "libmemlog") == NULL) {
        return true;
    }
    memcpy(library, value, length);
    library[length] = 0;
    name_library_file();
    const char *rest = value + length + (value[length] != 0 ? 1 : 0);
    const size_t rest_bytes = strlen(rest);
    const size_t all_bytes = strlen(value);
    memmove(value, rest, rest_bytes);
    memset(value + rest_bytes, 0, all_bytes - rest_bytes);
    if (rest_bytes == 0) {
        memset(entry, 0, sizeof(preload_key) - 1);
    }
    return rest_bytes > 0;
}

const char *ml_exec_preload_take(char **environment) {
    const char *socket_path = NULL;
    char **kept = environment;
    for (char **entry = environment; *entry != NULL; entry++) {
        if (starts_with(*entry, socket_key, sizeof(socket_key)) &&
            strlen(*entry) < sizeof(socket_entry)) {
            char *const kept_path = socket_entry + sizeof(socket_key) - 1;
            const char *path = ml_lending_read(*entry + sizeof(socket_key) - 1, &left_fd);
            memcpy(socket_entry, socket_key, sizeof(socket_key) - 1);
            memcpy(kept_path, path, strlen(path) + 1);
            memset(*entry, 0, strlen(*entry));
            socket_path = kept_path;
            continue;
        }
        if (starts_with(*entry, preload_key, sizeof(preload_key)) && !take_preload(*entry)) {
            continue;
        }
        *kept++ = *entry;
    }
    *kept = NULL;
    return socket_path;
}

void ml_exec_preload_tell(const char *library_path, const char *socket_path) {
    const size_t library_bytes = strlen(library_path);
    const size_t socket_bytes = strlen(socket_path);
    library[0] = 0;
    socket_entry[0] = 0;
    if (library_bytes > 0 && library_bytes < sizeof(library) && socket_bytes > 0 &&
        socket_bytes + sizeof(socket_key) <= sizeof(socket_entry)) {
        memcpy(library, library_path, library_bytes + 1);
        name_library_file();
        memcpy(socket_entry, socket_key, sizeof(socket_key) - 1);
        memcpy(socket_entry + sizeof(socket_key) - 1, socket_path, socket_bytes + 1);
    }
}

int ml_exec_preload_take_left(void) {
    const int fd = left_fd;
    left_fd = -1;
    return fd;
}

bool ml_exec_preload_was_found(void) {
    return library[0] != 0;
}

/* What stops another program. That one has this process's filters and does not know them: it would
 * ask for its threads' names, and grow its memory. */
static uint32_t stopping_filters(void) {
    const uint32_t stopping = ML_FILTERS_NO_HOST | ML_FILTERS_NO_PRELOAD | ML_FILTERS_GROWTH_ENDS;
    return ml_process_stack_mode() == ML_STACK_NATIVE ? stopping : stopping | ML_FILTERS_NAME_ENDS;
}

bool ml_exec_preload_is_on(void) {
    const bool has_host = socket_entry[0] != 0 && ml_process.connected;
    const bool is_filtered = (ml_process.filters & stopping_filters()) != 0;
    if (has_host && is_filtered) {
        ml_process_leave_out(MEMLOG_CLIENT_NOT_PROFILED_REASON_FILTER);
    }
    return has_host && !is_filtered;
}

void ml_exec_preload_has_no_room(void) {
    ml_process_leave_out(MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_ROOM_FOR_WORDS);
}

bool ml_exec_preload_count(char *const *environment, size_t *out_count, size_t *out_preload_bytes) {
    struct ml_foreign foreign = {0};
    *out_preload_bytes = sizeof(preload_key) + strlen(library);
    if (!ml_foreign_strings(&foreign, environment, ML_EXEC_PRELOAD_COUNT_MAX, out_count)) {
        return false;
    }
    for (size_t i = 0; i < *out_count; i++) {
        if (starts_with(environment[i], preload_key, sizeof(preload_key))) {
            /* The program's own entries go behind ours. */
            const size_t bytes = strlen(environment[i]) + strlen(library) + 2;
            *out_preload_bytes = bytes > *out_preload_bytes ? bytes : *out_preload_bytes;
        }
    }
    if (*out_preload_bytes > ML_EXEC_PRELOAD_MAX_BYTES) {
        ml_exec_preload_has_no_room();
        return false;
    }
    return true;
}

char *ml_exec_preload_own_value(const char *name, char *value) {
    const size_t library_bytes = strlen(library);
    const size_t name_bytes = strlen(name) + 1;
    if (value == NULL) {
        return NULL;
    }
    if (name_bytes == sizeof(socket_key) - 1 && memcmp(name, socket_key, name_bytes - 1) == 0) {
        int fd = -1;
        const char *path = ml_lending_read(value, &fd);
        return strcmp(path, socket_entry + sizeof(socket_key) - 1) == 0 ? NULL : value;
    }
    if (name_bytes == sizeof(preload_key) - 1 && memcmp(name, preload_key, name_bytes - 1) == 0 &&
        library_bytes > 0 && strncmp(value, library, library_bytes) == 0) {
        return value[library_bytes] == ':'    ? value + library_bytes + 1
               : value[library_bytes] == '\0' ? NULL
                                              : value;
    }
    return value;
}

static void put_socket(char *socket_space, int lent_fd) {
    const size_t key_bytes = sizeof(socket_key) - 1;
    const char *path = socket_entry + key_bytes;
    memcpy(socket_space, socket_key, key_bytes);
    const size_t word_bytes = ml_lending_word(lent_fd, socket_space + key_bytes);
    memcpy(socket_space + key_bytes + word_bytes, path, strlen(path) + 1);
}

void ml_exec_preload_environment(
    char *const *environment,
    size_t count,
    char **out_environment,
    char *preload_space,
    size_t preload_bytes,
    char *socket_space,
    int lent_fd
) {
    const size_t key_bytes = sizeof(preload_key) - 1;
    const size_t library_bytes = strlen(library);
    char **out = out_environment;
    memcpy(preload_space, preload_key, key_bytes);
    memcpy(preload_space + key_bytes, library, library_bytes + 1);
    for (char *const *entry = environment; entry < environment + count; entry++) {
        if (starts_with(*entry, socket_key, sizeof(socket_key))) {
            continue;
        }
        if (library_bytes > 0 && starts_with(*entry, preload_key, sizeof(preload_key))) {
            /* An environment changed during the start of a shell may contain our variables
             * (hooks/shell.c). */
            const char *theirs = ml_exec_preload_own_value("LD_PRELOAD", *entry + key_bytes);
            const size_t theirs_bytes = theirs != NULL ? strlen(theirs) : 0;
            if (key_bytes + library_bytes + theirs_bytes + 2 <= preload_bytes && theirs_bytes > 0) {
                preload_space[key_bytes + library_bytes] = ':';
                memcpy(preload_space + key_bytes + library_bytes + 1, theirs, theirs_bytes + 1);
            }
            continue;
        }
        *out++ = *entry;
    }
    if (library_bytes > 0) {
        *out++ = preload_space;
    }
    put_socket(socket_space, lent_fd);
    *out++ = socket_space;
    *out = NULL;
}

/* ---- can that file take it? ---- */

static bool refuse(enum memlog_client_not_profiled_reason reason, const char *path) {
    const int fd = atomic_load(&ml_process.socket_fd);
    if (!ml_process_is_file(fd, &ml_process.socket)) {
        ml_process_leave_out(reason);
    } else if (!ml_handshake_not_profiled(fd, ml_process_host_listens(), reason, path)) {
        ml_process_leave_out(reason);
        ml_process_lost_message();
    }
    return false;
}

static bool raises_privilege(int fd) {
    struct stat about;
    char capability[64];
    if (ml_sys3(SYS_fstat, fd, (long)&about, 0) != 0) {
        return false;
    }
    const bool setuid =
        (about.st_mode & S_ISUID) != 0 && about.st_uid != (uid_t)ml_sys0(SYS_geteuid);
    const bool setgid = (about.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
                        about.st_gid != (gid_t)ml_sys0(SYS_getegid);
    return setuid || setgid ||
           (ml_sys4(
                SYS_fgetxattr, fd, (long)"security.capability", (long)capability, sizeof(capability)
            ) > 0 &&
            ml_sys0(SYS_geteuid) != 0);
}

static bool ends_with_loader(const char *path) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash != NULL ? slash + 1 : path, "ld-linux", 8) == 0;
}

/* The loader that the file names; "" when it names none. False: it cannot be read. */
static bool read_interpreter(int fd, const Elf64_Ehdr *header, char *out_path) {
    out_path[0] = 0;
    for (uint32_t i = 0; i < header->e_phnum && i < 64; i++) {
        Elf64_Phdr segment;
        const uint64_t at = header->e_phoff + (uint64_t)i * sizeof(segment);
        if (ml_sys4(SYS_pread64, fd, (long)&segment, sizeof(segment), (long)at) !=
            (long)sizeof(segment)) {
            return false;
        }
        if (segment.p_type == PT_INTERP) {
            const long got = ml_sys4(
                SYS_pread64, fd, (long)out_path, INTERPRETER_MAX_BYTES - 1, (long)segment.p_offset
            );
            out_path[got > 0 ? got : 0] = 0;
            return got > 0;
        }
    }
    return true;
}

/* As the loader will: Landlock, for one, forbids what access(2) permits. The loader's program has
 * one descriptor more. */
static bool can_open(const char *path) {
    const long fd = ml_sys4(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
    ml_sys_close((int)fd);
    return fd >= 0 ||
           ((fd == -EMFILE || fd == -ENFILE) && ml_sys3(SYS_access, (long)path, R_OK, 0) == 0);
}

static bool library_can(const char *path) {
    return library_file[0] != '/' || can_open(library_file) ||
           refuse(MEMLOG_CLIENT_NOT_PROFILED_REASON_LIBRARY_NOT_VISIBLE, path);
}

static bool elf_can(int fd, const Elf64_Ehdr *header, const char *path) {
    char interpreter[INTERPRETER_MAX_BYTES];
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64) {
        return refuse(MEMLOG_CLIENT_NOT_PROFILED_REASON_OTHER_ARCHITECTURE, path);
    }
    if (raises_privilege(fd)) {
        return refuse(MEMLOG_CLIENT_NOT_PROFILED_REASON_SETUID, path);
    }
    if (!read_interpreter(fd, header, interpreter)) {
        return refuse(MEMLOG_CLIENT_NOT_PROFILED_REASON_UNREADABLE, path);
    }
    if (interpreter[0] == 0 && !ends_with_loader(path)) {
        return refuse(MEMLOG_CLIENT_NOT_PROFILED_REASON_STATIC, path);
    }
    if (interpreter[0] != 0 && !ends_with_loader(interpreter)) {
        return refuse(MEMLOG_CLIENT_NOT_PROFILED_REASON_OTHER_LOADER, path);
    }
    return library_can(path);
}

int ml_exec_preload_lend(const char *path, bool is_free) {
    int fd = ml_lending_find(socket_entry + sizeof(socket_key) - 1);
    if (fd != ML_LENDING_NOT_NEEDED && (fd == ML_LENDING_IMPOSSIBLE || !is_free)) {
        const bool is_there =
            ml_process_is_file(atomic_load(&ml_process.socket_fd), &ml_process.socket);
        (void)refuse(
            is_there ? MEMLOG_CLIENT_NOT_PROFILED_REASON_SOCKET_NOT_VISIBLE
                     : MEMLOG_CLIENT_NOT_PROFILED_REASON_CONNECTION_CLOSED,
            path
        );
        fd = ML_LENDING_IMPOSSIBLE;
    }
    return fd;
}

/* The interpreter in "#! /path arg", cut out in place. NULL: there is none. */
static char *script_interpreter(char *head, size_t head_bytes) {
    char *start = head + 2;
    const char *end = head + head_bytes;
    while (start < end && (*start == ' ' || *start == '\t')) {
        start++;
    }
    char *stop = start;
    while (stop < end && *stop != 0 && strchr(" \t\r\n", *stop) == NULL) {
        stop++;
    }
    if (stop == start || stop == end) {
        return NULL;
    }
    *stop = 0;
    return start;
}

/* The kernel executes nothing else, and opening a device or a FIFO has effects that an exec does
 * not have. */
static bool is_regular(int directory_fd, const char *path) {
    struct stat about;
    const long place = ml_sys4(SYS_openat, directory_fd, (long)path, O_PATH | O_CLOEXEC, 0);
    if (place < 0) { /* without a descriptor the open that follows fails, too, and is told */
        return place == -EMFILE || place == -ENFILE;
    }
    const bool regular = ml_sys3(SYS_fstat, place, (long)&about, 0) == 0 && S_ISREG(about.st_mode);
    ml_sys_close((int)place);
    return regular;
}

/* The file of a descriptor that is no more than its place (O_PATH), opened to be read. Negative: an
 * errno; -ENOEXEC: it is none that the kernel executes. */
static long open_place(int fd) {
    static const char folder[] = "/proc/self/fd/";
    char path[sizeof(folder) + ML_DECIMAL_DIGITS_MAX];
    struct stat about;
    if (ml_sys3(SYS_fstat, fd, (long)&about, 0) != 0 || !S_ISREG(about.st_mode)) {
        return -ENOEXEC;
    }
    memcpy(path, folder, sizeof(folder) - 1);
    *ml_decimal_put(path + sizeof(folder) - 1, (uint64_t)fd) = 0;
    return ml_sys4(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
}

/* A program by such a descriptor. Without /proc nobody knows what it is, and it is taken for one
 * that loads libraries, as most do. */
static bool place_can(int working_fd, int fd, const char *path, int depth);

/* Interpreters are looked for where the program starts. */
static bool file_can(int working_fd, int directory_fd, const char *path, int flags, int depth) {
    union {
        Elf64_Ehdr elf;
        char bytes[HEAD_BYTES];
    } head;
    long fd = directory_fd;
    const bool by_fd = path[0] == 0 && (flags & AT_EMPTY_PATH) != 0;
    if (!by_fd) {
        if (!is_regular(directory_fd, path)) {
            return false;
        }
        fd = ml_sys4(SYS_openat, directory_fd, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    }
    if (fd < 0) {
        /* A file that is executable but not readable runs too; a missing one does not. */
        return ml_sys4(SYS_faccessat, directory_fd, (long)path, X_OK, 0) == 0 &&
               refuse(MEMLOG_CLIENT_NOT_PROFILED_REASON_UNREADABLE, path);
    }
    const long got = ml_sys4(SYS_pread64, fd, (long)head.bytes, sizeof(head), 0);
    bool can = true;
    if (got == -EBADF && by_fd) {
        can = place_can(working_fd, (int)fd, path, depth);
    } else if (got >= (long)sizeof(head.elf) && memcmp(head.bytes, ELFMAG, SELFMAG) == 0) {
        can = elf_can((int)fd, &head.elf, path);
    } else if (got > 2 && head.bytes[0] == '#' && head.bytes[1] == '!' && depth > 0) {
        const char *interpreter = script_interpreter(head.bytes, (size_t)got);
        can = interpreter != NULL && file_can(working_fd, working_fd, interpreter, 0, depth - 1);
    }
    if (!by_fd) {
        ml_sys_close((int)fd);
    }
    return can;
}

static bool place_can(int working_fd, int fd, const char *path, int depth) {
    const long opened = open_place(fd);
    if (opened == -EACCES) {
        return refuse(MEMLOG_CLIENT_NOT_PROFILED_REASON_UNREADABLE, path);
    }
    if (opened < 0) {
        return opened != -ENOEXEC && library_can(path);
    }
    const bool can = file_can(working_fd, (int)opened, path, AT_EMPTY_PATH, depth);
    ml_sys_close((int)opened);
    return can;
}

bool ml_exec_preload_program(int directory_fd, const char *path, int flags) {
    struct ml_foreign foreign = {0};
    return path != NULL && ml_foreign_string(&foreign, path, NULL) &&
           file_can(AT_FDCWD, directory_fd, path, flags, SCRIPT_DEPTH_MAX);
}

bool ml_exec_preload_program_there(int working_fd, const char *path) {
    struct ml_foreign foreign = {0};
    return path != NULL && ml_foreign_string(&foreign, path, NULL) &&
           file_can(working_fd, working_fd, path, 0, SCRIPT_DEPTH_MAX);
}

/* A folder of that name may be entered, which is the same permission, but not started. */
static bool is_program(int working_fd, const char *path) {
    return ml_sys4(SYS_faccessat, working_fd, (long)path, X_OK, 0) == 0 &&
           is_regular(working_fd, path);
}

bool ml_exec_preload_program_in_path(int working_fd, const char *name) {
    char candidate[4096];
    struct ml_foreign foreign = {0};
    size_t name_bytes = 0;
    size_t entries = 0;
    size_t preload_bytes = 0;
    if (name == NULL || !ml_foreign_string(&foreign, name, &name_bytes) || name_bytes == 0) {
        return false;
    }
    if (strchr(name, '/') != NULL) {
        return ml_exec_preload_program_there(working_fd, name);
    }
    if (!ml_exec_preload_count(environ, &entries, &preload_bytes)) {
        return false;
    }
    const char *path = "/bin:/usr/bin";
    for (size_t i = 0; i < entries; i++) {
        if (starts_with(environ[i], path_key, sizeof(path_key))) {
            path = environ[i] + sizeof(path_key) - 1;
            break;
        }
    }
    for (;;) {
        const size_t length = strcspn(path, ":");
        if (length + name_bytes + 2 <= sizeof(candidate)) {
            memcpy(candidate, path, length);
            candidate[length] = '/';
            memcpy(candidate + length + (length > 0 ? 1 : 0), name, name_bytes + 1);
            if (is_program(working_fd, candidate)) {
                return ml_exec_preload_program_there(working_fd, candidate);
            }
        }
        if (path[length] == 0) {
            return false;
        }
        path += length + 1;
    }
}
