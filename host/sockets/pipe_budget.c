#include "host/sockets/pipe_budget.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's own defaults, should its word be unreadable. */
enum { PAGE_BYTES_FALLBACK = 4096, SOFT_PAGES_FALLBACK = 16384, HARD_PAGES_FALLBACK = 0 };

enum { OTHERS_MAX = 20 /* what is left is nothing by then */ };

bool ml_pipe_privileged(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{.effective = 0}};
    if (syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    return (data[0].effective & ((1U << CAP_SYS_ADMIN) | (1U << CAP_SYS_RESOURCE))) != 0;
}

/* 0: no quota of that name. */
static uint64_t read_pages(const char *folder, const char *name, uint64_t fallback) {
    char path[PATH_MAX];
    unsigned long long pages = fallback;
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%llu", &pages) != 1) {
            pages = fallback;
        }
        (void)fclose(file);
    }
    return pages;
}

void ml_pipe_budget_init(
    struct ml_pipe_budget *budget, const char *folder, uid_t uid, bool privileged, uint32_t others
) {
    *budget =
        (struct ml_pipe_budget){.limit_bytes = UINT64_MAX, .exempt_uid = uid, .exempt = privileged};
    const long page_bytes = sysconf(_SC_PAGESIZE);
    const uint64_t soft = read_pages(folder, "pipe-user-pages-soft", SOFT_PAGES_FALLBACK);
    const uint64_t hard = read_pages(folder, "pipe-user-pages-hard", HARD_PAGES_FALLBACK);
    const uint64_t pages = soft == 0 || (hard != 0 && hard < soft) ? hard : soft;
    if (pages != 0 && pages < UINT64_MAX / PAGE_BYTES_FALLBACK) {
        budget->limit_bytes =
            (pages * (uint64_t)(page_bytes > 0 ? page_bytes : PAGE_BYTES_FALLBACK) / 2) >>
            (others < OTHERS_MAX ? others : OTHERS_MAX);
    }
}

static struct ml_pipe_account *account_of(struct ml_pipe_budget *budget, uid_t uid) {
    for (uint32_t i = 0; i < budget->accounts_count; i++) {
        if (budget->accounts[i].uid == uid) {
            return &budget->accounts[i];
        }
    }
    if (budget->accounts_count == ML_PIPE_USERS_MAX) {
        return &budget->accounts[ML_PIPE_USERS_MAX - 1];
    }
    struct ml_pipe_account *account = &budget->accounts[budget->accounts_count++];
    *account = (struct ml_pipe_account){.uid = uid};
    return account;
}

static bool is_bound(const struct ml_pipe_budget *budget, uid_t uid) {
    return budget->limit_bytes != UINT64_MAX && !(budget->exempt && budget->exempt_uid == uid);
}

uint32_t ml_pipe_budget_take(struct ml_pipe_budget *budget, uid_t uid, int fd) {
    struct ml_pipe_account *account = account_of(budget, uid);
    const uint64_t limit = budget->limit_bytes;
    const struct {
        int bytes;
        uint64_t bound_bytes; /* of all pipes together, with this one */
    } sizes[] = {
        {ML_PIPE_LARGE_BYTES, limit / 2},
        {ML_PIPE_MIDDLE_BYTES, limit / 2 + limit / 4},
        {ML_PIPE_SMALL_BYTES, limit},
        {ML_PIPE_LEAST_BYTES, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const bool permitted =
            !is_bound(budget, uid) ||
            account->used_bytes + (uint64_t)sizes[i].bytes <= sizes[i].bound_bytes;
        if (permitted && fcntl(fd, F_SETPIPE_SZ, sizes[i].bytes) >= 0) {
            break;
        }
    }
    const int bytes = fcntl(fd, F_GETPIPE_SZ);
    if (bytes < 0) {
        return 0;
    }
    account->used_bytes += (uint64_t)bytes;
    return (uint32_t)bytes;
}

void ml_pipe_budget_give(struct ml_pipe_budget *budget, uid_t uid, uint32_t bytes) {
    struct ml_pipe_account *account = account_of(budget, uid);
    account->used_bytes -= bytes < account->used_bytes ? bytes : account->used_bytes;
}

uint32_t ml_pipe_budget_fork_bytes(const struct ml_pipe_budget *budget) {
    for (uint32_t i = 0; i < budget->accounts_count; i++) {
        if (is_bound(budget, budget->accounts[i].uid) &&
            budget->accounts[i].used_bytes > budget->limit_bytes / 2) {
            return ML_PIPE_SMALL_BYTES;
        }
    }
    return ML_PIPE_MIDDLE_BYTES;
}
