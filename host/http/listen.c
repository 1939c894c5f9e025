#include "host/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"

enum { BACKLOG = 128 };

static enum ml_status
fail(int fd, const struct ml_page_place *place, struct ml_error_message *error) {
    if (place->kind == ML_PAGE_UNIX) {
        ml_error_set(error, "memlog cannot listen at %s: %s", place->path, strerror(errno));
    } else {
        ml_error_set(
            error,
            "memlog cannot listen at %s port %u: %s",
            place->address,
            (unsigned)place->port,
            strerror(errno)
        );
    }
    ml_descriptor_close(&fd);
    return ML_ENV_SYSTEM;
}

static struct sockaddr_un path_address(const struct ml_page_place *place) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, place->path, sizeof(address.sun_path));
    return address;
}

/* A socket that is left over from a host that is gone. */
static void remove_stale(const struct ml_page_place *place) {
    const struct sockaddr_un address = path_address(place);
    struct stat about;
    if (lstat(place->path, &about) != 0 || !S_ISSOCK(about.st_mode)) {
        return;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 &&
        errno == ECONNREFUSED) {
        (void)unlink(place->path);
    }
    ml_descriptor_close(&fd);
}

static enum ml_status
listen_at_path(struct ml_page_place *place, int *out_fd, struct ml_error_message *error) {
    const struct sockaddr_un address = path_address(place);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    remove_stale(place);
    /* Ours alone, from its first moment: its file is made with the socket's own mode. The umask is
     * that of all threads of the program. */
    if (fd < 0 || fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, BACKLOG) != 0) {
        return fail(fd, place, error);
    }
    *out_fd = fd;
    return ML_OK;
}

static enum ml_status
listen_at_port(struct ml_page_place *place, int *out_fd, struct ml_error_message *error) {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } address = {.four = {.sin_family = AF_INET, .sin_port = htons(place->port)}};
    socklen_t count = sizeof(address.four);
    const int on = 1;
    if (inet_pton(AF_INET, place->address, &address.four.sin_addr) != 1) {
        address.six =
            (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(place->port)};
        (void)inet_pton(AF_INET6, place->address, &address.six.sin6_addr);
        count = sizeof(address.six);
    }
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(fd, &address.any, count) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, &address.any, &count) != 0) {
        return fail(fd, place, error);
    }
    place->port = ntohs(address.four.sin_port); /* the same place in both */
    *out_fd = fd;
    return ML_OK;
}

enum ml_status
ml_page_listen(struct ml_page_place *place, int *out_fd, struct ml_error_message *error) {
    return place->kind == ML_PAGE_UNIX ? listen_at_path(place, out_fd, error)
                                       : listen_at_port(place, out_fd, error);
}

void ml_page_unlisten(const struct ml_page_place *place) {
    if (place->kind == ML_PAGE_UNIX) {
        (void)unlink(place->path);
    }
}
