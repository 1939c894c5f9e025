#include "host/sockets/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/descriptor.h"

enum { PAGE_BYTES = 4096 };
_Static_assert(
    (int)PAGE_BYTES == (int)ML_CONTROL_BYTES && (int)PAGE_BYTES == (int)ML_LEASE_BYTES,
    "each is a page"
);

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

/* The first page of a memfd that a process has, too; NULL: none. Not written with pwrite, which
 * waits for whoever else writes: a process that writes out of memory whose pages it serves itself
 * (userfaultfd, a file system of its own) does so for as long as it likes. */
static void *map_page(int fd) {
    void *page =
        fd >= 0 ? mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    return page != MAP_FAILED ? page : NULL;
}

int ml_endpoint_lease(void) {
    const struct ml_lease_page page = {.magic = ML_LEASE_MAGIC};
    return make_memfd("memlog-lease", ML_LEASE_BYTES, &page, sizeof(page));
}

void ml_endpoint_lease_end(int lease_fd) {
    struct ml_lease_page *lease = map_page(lease_fd);
    if (lease != NULL) {
        __atomic_store_n(&lease->holder, 0, __ATOMIC_RELEASE);
        (void)munmap(lease, PAGE_BYTES);
    }
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
     * with it (ipc/wire/staging.h says why). */
    struct ml_control_page before = page;
    before.generation = endpoint->control.generation;
    before.profile = endpoint->control.profile;
    uint64_t last = 0; /* both */
    memcpy(&last, &page.generation, sizeof(last));
    struct ml_control_page *seen = map_page(endpoint->control_fd);
    if (seen == NULL) {
        return ML_ENV_SYSTEM;
    }
    memcpy(seen, &before, sizeof(before));
    __atomic_store_n((uint64_t *)(void *)&seen->generation, last, __ATOMIC_RELEASE);
    (void)munmap(seen, PAGE_BYTES);
    endpoint->control = page;
    return ML_OK;
}

void ml_endpoint_fork_pipe(struct ml_endpoint *endpoint, uint32_t bytes) {
    endpoint->control.fork_pipe_bytes = bytes;
    struct ml_control_page *seen = map_page(endpoint->control_fd);
    if (seen != NULL) {
        __atomic_store_n(&seen->fork_pipe_bytes, bytes, __ATOMIC_RELEASE);
        (void)munmap(seen, PAGE_BYTES);
    }
}

void ml_endpoint_fork_enabled(struct ml_endpoint *endpoint, bool enabled) {
    endpoint->control.fork_enabled = enabled ? 1 : 0;
    struct ml_control_page *seen = map_page(endpoint->control_fd);
    if (seen != NULL) {
        __atomic_store_n(&seen->fork_enabled, endpoint->control.fork_enabled, __ATOMIC_RELEASE);
        (void)munmap(seen, PAGE_BYTES);
    }
}

uint64_t ml_endpoint_left_out(const struct ml_endpoint *endpoint) {
    const off_t at = (off_t)offsetof(struct ml_staging_header, left_out);
    uint64_t left_out = 0;
    return pread(endpoint->staging_fd, &left_out, sizeof(left_out), at) == (ssize_t)sizeof(left_out)
               ? left_out
               : 0;
}

void ml_endpoint_close(struct ml_endpoint *endpoint, struct ml_pipe_budget *budget) {
    ml_descriptor_close(&endpoint->pipe_read_fd);
    ml_descriptor_close(&endpoint->staging_fd);
    ml_descriptor_close(&endpoint->control_fd);
    if (endpoint->pipe_bytes > 0) {
        ml_pipe_budget_give(budget, endpoint->pipe_uid, endpoint->pipe_bytes);
    }
    endpoint->pipe_bytes = 0;
}
