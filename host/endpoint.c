#include "host/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

static int make_memfd(const char *name, uint64_t size_bytes, const void *start, size_t count) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return -1;
    }
    if (ftruncate(fd, (off_t)size_bytes) != 0 || pwrite(fd, start, count, 0) != (ssize_t)count ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

int ml_endpoint_lease(void) {
    const struct ml_lease_page page = {.magic = ML_LEASE_MAGIC};
    return make_memfd("memlog-lease", ML_LEASE_BYTES, &page, sizeof(page));
}

void ml_endpoint_lease_end(int lease_fd) {
    const uint64_t nobody = 0;
    (void)!pwrite(lease_fd, &nobody, sizeof(nobody), offsetof(struct ml_lease_page, holder));
}

bool ml_endpoint_lease_held(int lease_fd) {
    uint64_t holder = 0;
    (void)!pread(lease_fd, &holder, sizeof(holder), offsetof(struct ml_lease_page, holder));
    return holder != 0;
}

void ml_endpoint_init(struct ml_endpoint *endpoint) {
    *endpoint = (struct ml_endpoint){.pipe_read_fd = -1, .staging_fd = -1, .control_fd = -1};
}

enum ml_status ml_endpoint_make(
    struct ml_endpoint *endpoint,
    struct ml_pipe_budget *budget,
    uint32_t staging_slots,
    const struct ml_control_page *control,
    int *out_write_fd
) {
    ml_endpoint_init(endpoint);
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = staging_slots};
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return ML_ENV_SYSTEM;
    }
    endpoint->pipe_read_fd = ends[0];
    endpoint->pipe_uid = getuid();
    endpoint->pipe_bytes = ml_pipe_budget_take(budget, endpoint->pipe_uid, ends[0]);
    endpoint->staging_fd =
        make_memfd("memlog-staging", ml_staging_size_bytes(staging_slots), &header, sizeof(header));
    endpoint->control = *control;
    endpoint->control.magic = ML_CONTROL_MAGIC;
    endpoint->control.version = ML_STAGING_VERSION;
    endpoint->control.generation = 1;
    endpoint->control_fd = make_memfd(
        "memlog-control", ML_CONTROL_BYTES, &endpoint->control, sizeof(endpoint->control)
    );
    if (endpoint->staging_fd < 0 || endpoint->control_fd < 0) {
        (void)close(ends[1]);
        ml_endpoint_close(endpoint, budget);
        return ML_ENV_SYSTEM;
    }
    *out_write_fd = ends[1];
    return ML_OK;
}

/* A read end that nobody else has, of a pipe that somebody else has made: O_NONBLOCK belongs to the
 * open file description, and who keeps a copy of ours could take it off. A FIFO is none of the
 * kernel's own pipes: its file system may never answer. */
static enum ml_status private_read_end(int fd, int *out_fd) {
    static const char prefix[] = "pipe:[";
    char path[64];
    char name[sizeof(prefix)];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, name, sizeof(name)) != (ssize_t)sizeof(name) ||
        strncmp(name, prefix, strlen(prefix)) != 0) {
        return ML_PEER_HANDLE;
    }
    *out_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (*out_fd >= 0) {
        return ML_OK;
    }
    return errno == EACCES ? ML_ENV_REFUSED : ML_ENV_SYSTEM;
}

/* A memfd of ordinary pages that can be read and written: others cannot be mapped at will. */
static bool is_plain_memfd(int fd) {
    struct statfs about;
    return fstatfs(fd, &about) == 0 && about.f_type == TMPFS_MAGIC &&
           (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR &&
           (fcntl(fd, F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0;
}

enum ml_status ml_endpoint_adopt(
    struct ml_endpoint *endpoint,
    struct ml_pipe_budget *budget,
    uid_t uid,
    int take_pipe_fd,
    int take_staging_fd,
    int take_control_fd
) {
    const int flags = fcntl(take_pipe_fd, F_GETFL);
    *endpoint = (struct ml_endpoint
    ){.pipe_read_fd = -1, .staging_fd = take_staging_fd, .control_fd = take_control_fd};
    enum ml_status status = private_read_end(take_pipe_fd, &endpoint->pipe_read_fd);
    (void)close(take_pipe_fd);
    /* What the child has written of its control page is its word; only the generation counts, so
     * that ours is another one. */
    struct ml_control_page page = {.magic = 0};
    if (status == ML_OK &&
        ((flags & O_ACCMODE) != O_RDONLY || !is_plain_memfd(take_staging_fd) ||
         !is_plain_memfd(take_control_fd) ||
         pread(take_control_fd, &page, sizeof(page), 0) != (ssize_t)sizeof(page) ||
         page.magic != ML_CONTROL_MAGIC || page.version != ML_STAGING_VERSION)) {
        status = ML_PEER_HANDLE;
    }
    if (status != ML_OK) {
        ml_endpoint_close(endpoint, budget);
        return status;
    }
    page.profile = 0; /* the child's stream has begun with its first, whatever it says here */
    endpoint->control = page;
    endpoint->pipe_uid = uid;
    endpoint->pipe_bytes = ml_pipe_budget_take(budget, uid, endpoint->pipe_read_fd);
    return ML_OK;
}

enum ml_status
ml_endpoint_control(struct ml_endpoint *endpoint, const struct ml_control_page *control) {
    struct ml_control_page page = *control;
    page.magic = ML_CONTROL_MAGIC;
    page.version = ML_STAGING_VERSION;
    page.clock = endpoint->control.clock;
    page.generation = endpoint->control.generation + 1;
    if (page.generation == 0) {
        page.generation = 1;
    }
    /* The process polls the generation: it is written last, when the rest is there, and the profile
     * with it (ipc/staging.h says why). */
    struct ml_control_page before = page;
    before.generation = endpoint->control.generation;
    before.profile = endpoint->control.profile;
    const uint32_t last[] = {page.generation, page.profile};
    const off_t last_at = offsetof(struct ml_control_page, generation);
    if (endpoint->control_fd < 0 ||
        pwrite(endpoint->control_fd, &before, sizeof(before), 0) != (ssize_t)sizeof(before) ||
        pwrite(endpoint->control_fd, last, sizeof(last), last_at) != (ssize_t)sizeof(last)) {
        return ML_ENV_SYSTEM;
    }
    endpoint->control = page;
    return ML_OK;
}

void ml_endpoint_fork_pipe(struct ml_endpoint *endpoint, uint32_t bytes) {
    endpoint->control.fork_pipe_bytes = bytes;
    if (endpoint->control_fd >= 0) {
        (void)!pwrite(
            endpoint->control_fd,
            &endpoint->control.fork_pipe_bytes,
            sizeof(endpoint->control.fork_pipe_bytes),
            offsetof(struct ml_control_page, fork_pipe_bytes)
        );
    }
}

void ml_endpoint_fork_enabled(struct ml_endpoint *endpoint, bool enabled) {
    endpoint->control.fork_enabled = enabled ? 1 : 0;
    if (endpoint->control_fd >= 0) {
        (void)!pwrite(
            endpoint->control_fd,
            &endpoint->control.fork_enabled,
            sizeof(endpoint->control.fork_enabled),
            offsetof(struct ml_control_page, fork_enabled)
        );
    }
}

static void close_fd(int *fd) {
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

void ml_endpoint_close(struct ml_endpoint *endpoint, struct ml_pipe_budget *budget) {
    close_fd(&endpoint->pipe_read_fd);
    close_fd(&endpoint->staging_fd);
    close_fd(&endpoint->control_fd);
    if (endpoint->pipe_bytes > 0) {
        ml_pipe_budget_give(budget, endpoint->pipe_uid, endpoint->pipe_bytes);
    }
    endpoint->pipe_bytes = 0;
}
