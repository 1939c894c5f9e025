#include "host/collect/forms/inbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#include "host/process/loop.h"

enum { AT_ONCE = 64, STRANGERS_MAX = 4096 };

/* Looked at again so often; at once when there is more. A network's file system tells nobody of
 * what others write, so it is looked at. */
static const double look_s = 1., more_s = 0.01, later_s = 30.;

static const char taken_name[] = "taken";
static const char refused_name[] = "refused";

/* A file under another name than memlog's: when it was last seen to change. */
struct stranger {
    ino_t inode;
    off_t bytes;
    struct timespec changed;
    double since; /* the loop's time */
    bool is_seen; /* in this look */
};

struct ml_inbox {
    struct ml_inbox_setup setup;
    int folder_fd;
    ev_timer timer;
    struct stranger *strangers;
    size_t strangers_count;
    ino_t stuck; /* that was taken and could not be moved; 0: none */
};

bool ml_inbox_guid(const char *name, char out_guid[ML_INBOX_GUID_BYTES]) {
    static const char begin[] = "memlog-";
    static const char end[] = ".trace.json.gz";
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const char *slash = strrchr(name, '/');
    name = slash != NULL ? slash + 1 : name;
    out_guid[0] = '\0';
    if (strncmp(name, begin, sizeof(begin) - 1) != 0) {
        return false;
    }
    name += sizeof(begin) - 1;
    const size_t count = strspn(name, letters);
    if (count == 0 || count >= ML_INBOX_GUID_BYTES || strcmp(name + count, end) != 0) {
        return false;
    }
    memcpy(out_guid, name, count);
    out_guid[count] = '\0';
    return true;
}

static void trouble(const struct ml_inbox *inbox, const char *name, const char *what) {
    char text[1024];
    (void)snprintf(text, sizeof(text), "%.500s/%.255s: %.200s", inbox->setup.folder, name, what);
    inbox->setup.on_trouble(inbox->setup.context, text);
}

/* ---- strangers */

static bool is_same(const struct stranger *one, const struct stat *facts) {
    return one->inode == facts->st_ino && one->bytes == facts->st_size &&
           one->changed.tv_sec == facts->st_mtim.tv_sec &&
           one->changed.tv_nsec == facts->st_mtim.tv_nsec;
}

/* Whether it has been as it is for long enough. */
static bool is_still(struct ml_inbox *inbox, const struct stat *facts) {
    const double now = ev_now(inbox->setup.loop);
    for (size_t i = 0; i < inbox->strangers_count; i++) {
        struct stranger *one = &inbox->strangers[i];
        if (is_same(one, facts)) {
            one->is_seen = true;
            return now - one->since >= (double)ML_INBOX_STILL_S;
        }
    }
    if (inbox->strangers_count < STRANGERS_MAX) {
        inbox->strangers[inbox->strangers_count++] = (struct stranger
        ){.inode = facts->st_ino,
          .bytes = facts->st_size,
          .changed = facts->st_mtim,
          .since = now,
          .is_seen = true};
    }
    return false;
}

/* Those that are gone or have changed. */
static void forget_strangers(struct ml_inbox *inbox) {
    size_t kept = 0;
    for (size_t i = 0; i < inbox->strangers_count; i++) {
        if (inbox->strangers[i].is_seen) {
            inbox->strangers[kept] = inbox->strangers[i];
            inbox->strangers[kept++].is_seen = false;
        }
    }
    inbox->strangers_count = kept;
}

/* ---- one file */

static bool is_plain(const struct stat *facts) {
    return S_ISREG(facts->st_mode) && facts->st_nlink == 1;
}

static bool is_same_file(int folder_fd, const char *name, const struct stat *facts) {
    struct stat now;
    return fstatat(folder_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
           now.st_ino == facts->st_ino && now.st_dev == facts->st_dev;
}

/* Out of the way. What came under its name meanwhile stays. */
static void
move(struct ml_inbox *inbox, const char *name, const char *into, const struct stat *facts) {
    if (mkdirat(inbox->folder_fd, into, S_IRWXU) != 0 && errno != EEXIST) {
        trouble(inbox, into, strerror(errno));
    }
    const int to_fd =
        openat(inbox->folder_fd, into, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_moved = to_fd >= 0 && is_same_file(inbox->folder_fd, name, facts) &&
                    renameat(inbox->folder_fd, name, to_fd, name) == 0;
    const int error = errno;
    if (is_moved && !is_same_file(to_fd, name, facts)) {
        (void)renameat2(to_fd, name, inbox->folder_fd, name, RENAME_NOREPLACE);
        is_moved = false;
    }
    if (!is_moved && is_same_file(inbox->folder_fd, name, facts)) {
        if (inbox->stuck != facts->st_ino) {
            trouble(inbox, name, strerror(error));
        }
        inbox->stuck = facts->st_ino;
    }
    if (to_fd >= 0) {
        (void)close(to_fd);
    }
}

/* False: no more is to be taken now. */
static bool take(struct ml_inbox *inbox, const char *name, const char *guid) {
    struct stat facts;
    bool goes_on = true;
    /* A pipe or a device must not hold the loop up. */
    const int fd =
        openat(inbox->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return true;
    }
    if (fstat(fd, &facts) == 0 && is_plain(&facts)) {
        switch (inbox->setup.on_file(inbox->setup.context, fd, (uint64_t)facts.st_size, guid)) {
        case ML_INBOX_TAKEN:
            move(inbox, name, taken_name, &facts);
            break;
        case ML_INBOX_REFUSED:
            trouble(inbox, name, "it cannot be a report; it is moved to 'refused'");
            move(inbox, name, refused_name, &facts);
            break;
        case ML_INBOX_LATER:
            goes_on = false;
            break;
        }
    }
    (void)close(fd);
    return goes_on;
}

/* ---- all of them */

/* Whether it may be taken now. */
static bool is_whole(struct ml_inbox *inbox, const char *name, char *out_guid) {
    struct stat facts;
    if (name[0] == '.' || fstatat(inbox->folder_fd, name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_plain(&facts) || facts.st_ino == inbox->stuck) {
        return false;
    }
    return ml_inbox_guid(name, out_guid) || is_still(inbox, &facts);
}

static double look(struct ml_inbox *inbox) {
    char guid[ML_INBOX_GUID_BYTES];
    double next_s = look_s;
    unsigned count = 0;
    const int fd = openat(inbox->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (folder == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return later_s;
    }
    for (const struct dirent *one = readdir(folder); one != NULL && next_s >= look_s;
         one = readdir(folder)) {
        if (!is_whole(inbox, one->d_name, guid)) {
            continue;
        }
        if (!take(inbox, one->d_name, guid)) {
            next_s = later_s;
            break;
        }
        next_s = ++count < AT_ONCE ? look_s : more_s;
    }
    (void)closedir(folder);
    if (count < AT_ONCE) {
        forget_strangers(inbox);
    }
    return next_s;
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    struct ml_inbox *inbox = watcher->data;
    ml_timer_start(loop, &inbox->timer, look(inbox));
}

struct ml_inbox *ml_inbox_new(const struct ml_inbox_setup *setup, struct ml_error_message *error) {
    struct ml_inbox *inbox = calloc(1, sizeof(*inbox));
    struct stranger *strangers = calloc(STRANGERS_MAX, sizeof(*strangers));
    if (inbox == NULL || strangers == NULL) {
        free(inbox);
        free(strangers);
        ml_error_set(error, "memory ran out");
        return NULL;
    }
    inbox->setup = *setup;
    inbox->strangers = strangers;
    inbox->folder_fd = open(setup->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ml_timer_init(&inbox->timer, on_timer, inbox);
    if (inbox->folder_fd < 0 ||
        (mkdirat(inbox->folder_fd, taken_name, S_IRWXU) != 0 && errno != EEXIST) ||
        faccessat(inbox->folder_fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        ml_error_set(
            error,
            "--folder: %s: %s; reports are moved away in it once they are taken",
            setup->folder,
            strerror(errno)
        );
        ml_inbox_free(inbox);
        return NULL;
    }
    ml_timer_start(setup->loop, &inbox->timer, 0.);
    return inbox;
}

void ml_inbox_free(struct ml_inbox *take_inbox) {
    struct ml_inbox *inbox = take_inbox;
    if (inbox == NULL) {
        return;
    }
    ev_timer_stop(inbox->setup.loop, &inbox->timer);
    if (inbox->folder_fd >= 0) {
        (void)close(inbox->folder_fd);
    }
    free(inbox->strangers);
    free(inbox);
}
