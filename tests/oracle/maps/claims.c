#include "tests/oracle/maps/claims.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CLAIMS_MAX = 12000, TEXT_BYTES = 4096, LINE_BYTES = 512 };

static struct claim claims[CLAIMS_MAX];
static size_t claims_count;
static int child_says[2], parent_lives[2];

void claims_die(const char *what) {
    ssize_t ignored = write(2, what, strlen(what));
    ignored += write(2, "\n", 1);
    (void)ignored;
    _exit(99);
}

void claim(struct claim made) {
    if (claims_count == CLAIMS_MAX) {
        claims_die("too many claims");
    }
    claims[claims_count++] = made;
}

void claim_pages(const char *chain, const char *start, size_t pages, size_t touched_pages) {
    claim((struct claim
    ){.kind = "mapped",
      .chain = chain,
      .start = start,
      .mapped_bytes = pages * MAPS_PAGE,
      .private_bytes = (long)(touched_pages * MAPS_PAGE)});
}

void claims_forget(void) {
    claims_count = 0;
}

void touch(void *start, size_t bytes) {
    for (size_t i = 0; i < bytes; i += MAPS_PAGE) {
        *((volatile char *)start + i) = 1;
    }
}

MAPS_PATH char *map_pages(size_t count) {
    char *at =
        mmap(NULL, count * MAPS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        claims_die("mmap failed");
    }
    return at;
}

/* ---- writing */

struct text {
    int fd;
    size_t bytes;
    char buffer[TEXT_BYTES];
};

static void flush(struct text *text) {
    if (write(text->fd, text->buffer, text->bytes) != (ssize_t)text->bytes) {
        claims_die("cannot write the claims");
    }
    text->bytes = 0;
}

static const char *or_empty(const char *word) {
    return word ? word : "";
}

static void put_claim(struct text *text, const struct claim *one, bool is_last) {
    if (text->bytes + LINE_BYTES > TEXT_BYTES) {
        flush(text);
    }
    const int count = snprintf(
        text->buffer + text->bytes,
        LINE_BYTES,
        " {\"kind\": \"%s\", \"chain\": \"%s\", \"name\": \"%s\", \"start\": %llu, "
        "\"mapped_bytes\": %zu, \"private_bytes\": %ld, \"shared_bytes\": %ld}%s\n",
        one->kind,
        or_empty(one->chain),
        or_empty(one->name),
        (unsigned long long)(uintptr_t)one->start,
        one->mapped_bytes,
        one->private_bytes,
        one->shared_bytes,
        is_last ? "" : ","
    );
    if (count <= 0 || count >= LINE_BYTES) {
        claims_die("a claim is too long");
    }
    text->bytes += (size_t)count;
}

void claims_write(void) {
    static struct text text;
    static char path[512], wanted[512];
    const char *folder = getenv("ORACLE_DIR");
    if (folder == NULL || strlen(folder) > sizeof(path) / 2) {
        claims_die("ORACLE_DIR is not set");
    }
    (void)snprintf(wanted, sizeof(wanted), "%s/%d-maps.json", folder, (int)getpid());
    (void)snprintf(path, sizeof(path), "%s/%d-maps.part", folder, (int)getpid());
    text.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    text.bytes =
        (size_t)snprintf(text.buffer, TEXT_BYTES, "{\"pid\": %d, \"claims\": [\n", (int)getpid());
    for (size_t i = 0; i < claims_count; i++) {
        put_claim(&text, &claims[i], i + 1 == claims_count);
    }
    flush(&text);
    if (write(text.fd, "]}\n", 3) != 3 || close(text.fd) != 0 || rename(path, wanted) != 0) {
        claims_die("cannot write the claims");
    }
}

/* ---- children */

void claims_of_child(void) {
    char byte = 1;
    claims_write();
    if (write(child_says[1], &byte, 1) != 1) {
        claims_die("cannot tell the parent");
    }
    (void)!read(parent_lives[0], &byte, 1); /* until its end */
    _exit(0);
}

pid_t claims_fork(void) {
    if (pipe(child_says) != 0 || pipe(parent_lives) != 0) {
        claims_die("pipe failed");
    }
    const pid_t pid = fork();
    if (pid < 0) {
        claims_die("fork failed");
    }
    (void)close(pid == 0 ? parent_lives[1] : child_says[1]);
    if (pid == 0) {
        free(malloc(1)); /* whoever never allocates is not recorded */
    }
    return pid;
}

void claims_wait(void) {
    char byte;
    if (read(child_says[0], &byte, 1) != 1) {
        claims_die("the child has ended");
    }
}

bool maps_run(const struct maps_case *cases, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cases[i].name, name) == 0) {
            cases[i].run();
            return true;
        }
    }
    return false;
}
