#include "ipc/channel/internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux 6.5; younger than the headers of some of the systems it runs on. */
#ifndef SCM_PIDFD
#    define SCM_PIDFD 0x04
#endif

static void close_with(int take_fd, void (*close_foreign)(int take_fd)) {
    if (close_foreign != NULL) {
        close_foreign(take_fd);
    } else {
        (void)close(take_fd);
    }
}

static enum ml_status take_fds(
    const struct cmsghdr *part, struct ml_handles *handles, void (*close_foreign)(int take_fd)
) {
    enum ml_status status = ML_OK;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
        if (handles->count < ML_HANDLES_MAX) {
            handles->fds[handles->count++] = fd;
        } else {
            close_with(fd, close_foreign);
            status = ML_PEER_HANDLE;
        }
    }
    return status;
}

enum ml_status ml_channel_handles_take(
    struct msghdr *message,
    struct ml_handles *out_handles,
    struct ml_peer *out_peer,
    int *peer_pidfd,
    void (*close_foreign)(int take_fd)
) {
    if (*peer_pidfd >= 0) {
        (void)close(*peer_pidfd);
        *peer_pidfd = -1;
    }
    struct ml_handles handles = {0};
    struct ml_peer peer = {0};
    enum ml_status status = ML_OK;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
         part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET) {
            continue;
        }
        if (part->cmsg_type == SCM_RIGHTS) {
            const enum ml_status taken = take_fds(part, &handles, close_foreign);
            status = status == ML_OK ? taken : status;
        } else if (part->cmsg_type == SCM_PIDFD && part->cmsg_len == CMSG_LEN(sizeof(int))) {
            memcpy(peer_pidfd, CMSG_DATA(part), sizeof(int));
        } else if (part->cmsg_type == SCM_CREDENTIALS) {
            struct ucred credentials = {0};
            memcpy(&credentials, CMSG_DATA(part), sizeof(credentials));
            peer = (struct ml_peer
            ){.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
        }
    }
    if (status != ML_OK) {
        ml_channel_handles_refuse(&handles, close_foreign);
        return status;
    }
    *out_handles = handles;
    *out_peer = peer;
    return ML_OK;
}

static bool is_sealed(int fd, int seals_wanted) {
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & seals_wanted) == seals_wanted;
}

static mode_t type_of(int fd) {
    struct stat about;
    return fstat(fd, &about) == 0 ? about.st_mode & S_IFMT : 0;
}

/* Pipes and memfds come from programs, which may send something else instead. The checks that the
 * kernel answers by itself come first: fstat asks a file system, which may never answer. */
static bool is_of_kind(int fd, enum ml_handle_kind kind) {
    const int flags = fcntl(fd, F_GETFL);
    /* An O_PATH descriptor names a file without granting access to it. */
    if (flags < 0 || (flags & O_PATH) != 0) {
        return false;
    }
    switch (kind) {
    case ML_HANDLE_PIPE:
        return ml_channel_pipe_bytes(fd) > 0;
    case ML_HANDLE_MEMFD:
        return is_sealed(fd, F_SEAL_SHRINK | F_SEAL_GROW);
    case ML_HANDLE_MEMFD_UNSEALED:
        return is_sealed(fd, 0);
    case ML_HANDLE_FILE:
        return type_of(fd) == S_IFREG;
    case ML_HANDLE_SOCKET:
        return type_of(fd) == S_IFSOCK;
    }
    return false;
}

enum ml_status
ml_channel_handles_check(const struct ml_handles *handles, const struct ml_handles *declared) {
    if (handles->count != declared->count) {
        return ML_PEER_HANDLE;
    }
    for (uint32_t i = 0; i < handles->count; i++) {
        if (!is_of_kind(handles->fds[i], declared->kinds[i])) {
            return ML_PEER_HANDLE;
        }
    }
    return ML_OK;
}

enum ml_status ml_channel_handles_duplicate(struct ml_handles *handles) {
    struct ml_handles ours = {0};
    for (uint32_t i = 0; i < handles->count; i++) {
        const int fd = fcntl(handles->fds[i], F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            ml_channel_handles_close(&ours);
            return ML_ENV_SYSTEM;
        }
        ours.fds[ours.count] = fd;
        ours.kinds[ours.count++] = handles->kinds[i];
    }
    *handles = ours;
    return ML_OK;
}

void ml_channel_handles_close(struct ml_handles *handles) {
    for (uint32_t i = 0; i < handles->count; i++) {
        (void)close(handles->fds[i]);
    }
    handles->count = 0;
}

void ml_channel_handles_refuse(struct ml_handles *handles, void (*close_foreign)(int take_fd)) {
    for (uint32_t i = 0; i < handles->count; i++) {
        close_with(handles->fds[i], close_foreign);
    }
    handles->count = 0;
}

/* Whether a message is there, perhaps one without a byte, with descriptors. */
static bool holds_messages(int fd) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes)};
    const ssize_t count = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
    return count > 0 || (count == 0 && message.msg_controllen > 0);
}

void ml_channel_close_socket(int take_fd, void (*close_foreign)(int take_fd)) {
    if (close_foreign == NULL) {
        (void)close(take_fd);
        return;
    }
    /* From here on no more can come. */
    (void)shutdown(take_fd, SHUT_RD);
    if (holds_messages(take_fd)) {
        (void)shutdown(take_fd, SHUT_RDWR);
        close_foreign(take_fd);
    } else {
        (void)close(take_fd);
    }
}

uint64_t ml_channel_pipe_bytes(int pipe_fd) {
    const int bytes = fcntl(pipe_fd, F_GETPIPE_SZ);
    return bytes > 0 ? (uint64_t)bytes : 0;
}
