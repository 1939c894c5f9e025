#include "host/engine/dump/names.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "host/engine/list/known.h"
#include "host/process/paths.h"

/* A dump waits so long for them. */
enum { NAMES_TIMEOUT_S = 60 };

/* Of one dump, and of all: names of some million places. */
static const uint64_t names_max_bytes = 64 << 20;

/* Copy it behind what the other file has; where that fails, the other file stays as it was. */
static bool append(int from_fd, uint64_t count_bytes, int to_fd) {
    off_t at = 0;
    const off_t end = lseek(to_fd, 0, SEEK_END);
    bool fine = end >= 0;
    while (fine && (uint64_t)at < count_bytes) {
        fine = sendfile(to_fd, from_fd, &at, (size_t)(count_bytes - (uint64_t)at)) > 0;
    }
    if (!fine && end >= 0) {
        (void)!ftruncate(to_fd, end);
        (void)lseek(to_fd, end, SEEK_SET);
    }
    return fine;
}

/* Keep them for the dumps to come: a root is let go of then. False: there is no room. */
static bool keep(struct ml_dump_names *names, int from_fd, uint64_t count_bytes) {
    if (names->kept_fd < 0) {
        names->kept_fd = memfd_create("memlog-names", MFD_CLOEXEC);
    }
    if (names->kept_fd < 0 || names->kept_bytes + count_bytes > names_max_bytes ||
        !append(from_fd, count_bytes, names->kept_fd)) {
        return false;
    }
    names->kept_bytes += count_bytes;
    return true;
}

static void say_missing(struct ml_engine *engine, const char *trouble) {
    if (ml_engine_says_first(engine, ML_SAID_NAMES)) {
        ml_engine_notice(
            engine,
            "names of code in containers and deleted files are missing in dumps: %s; memlog "
            "symbolize adds them while their processes run",
            trouble
        );
    }
}

static void on_named(
    void *context,
    enum ml_analyzer_verdict verdict,
    int take_file_fd,
    uint64_t file_bytes,
    const char *trouble
) {
    struct ml_engine *engine = context;
    struct ml_dump_names *names = engine->names;
    if (verdict == ML_ANALYZER_FAILED) {
        say_missing(engine, trouble);
    } else if (file_bytes > names_max_bytes) {
        say_missing(engine, "there are too many of them");
    } else if (file_bytes > 0 && !append(take_file_fd, file_bytes, names->dump_fd)) {
        say_missing(engine, "they could not be written into the dump");
    } else if (file_bytes == 0 || keep(names, take_file_fd, file_bytes)) {
        ml_roots_forget(&engine->roots, names->unused);
    }
    ml_descriptor_close(&take_file_fd);
    names->dump_fd = -1;
    names->on_done(engine);
}

static void on_helper(void *context, pid_t pid) {
    struct ml_engine *engine = context;
    ml_engine_add_helper(engine, pid);
    if (engine->on_service != NULL) {
        engine->on_service(engine->context, pid);
    }
}

static bool open_analyzer(struct ml_engine *engine, struct ml_error_message *error) {
    struct ml_dump_names *names = engine->names;
    const struct ml_analyzer_setup setup = {
        .loop = engine->loop,
        .path = names->analyzer_path,
        .inherited = engine->inherited,
        .on_helper = on_helper,
        .context = engine,
        .timeout_s = NAMES_TIMEOUT_S,
    };
    if (names->analyzer != NULL) {
        return true;
    }
    if (ml_paths_find(ML_ANALYZER_FILE, names->analyzer_path, error) != ML_OK) {
        return false;
    }
    if (ml_analyzer_open(&setup, &names->analyzer) != ML_OK) {
        ml_error_set(error, "no memory");
        return false;
    }
    return true;
}

void ml_dump_names_note(struct ml_engine *engine) {
    ml_roots_unused(&engine->roots, engine->names->unused);
}

/* Whether code of a process that runs lies in a file without a name. */
static bool is_any_unlinked(const struct ml_engine *engine) {
    for (size_t i = 0; i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING &&
            (member->has_unlinked_code || strstr(member->executable, " (deleted)") != NULL)) {
            return true;
        }
    }
    return false;
}

void ml_dump_names_add(
    struct ml_engine *engine, int dump_fd, void (*on_done)(struct ml_engine *engine)
) {
    struct ml_dump_names *names = engine->names;
    struct ml_error_message error = {.text = "there is no memory for it"};
    int spaces[ML_ROOT_SPACES_MAX];
    size_t spaces_count = 0;
    ml_dump_names_add_known(engine, dump_fd);
    if (!ml_roots_are_any(&engine->roots) && !is_any_unlinked(engine)) {
        on_done(engine);
        return;
    }
    int table_fd = ml_roots_table(&engine->roots, spaces, &spaces_count);
    if (table_fd < 0 || !open_analyzer(engine, &error)) {
        ml_descriptor_close(&table_fd);
        say_missing(engine, error.text);
        on_done(engine);
        return;
    }
    names->dump_fd = dump_fd;
    names->on_done = on_done;
    const struct ml_analyzer_job job = {
        .arguments = {"container-names", ML_ANALYZER_FIRST_PATH},
        .first_fd = dump_fd,
        .second_fd = table_fd,
        .more_fds = spaces,
        .more_count = spaces_count,
        .on_done = on_named,
        .context = engine,
    };
    ml_analyzer_start(names->analyzer, &job);
    ml_descriptor_close(&table_fd);
}

void ml_dump_names_add_known(struct ml_engine *engine, int file_fd) {
    struct ml_dump_names *names = engine->names;
    if (names->kept_bytes > 0 && !append(names->kept_fd, names->kept_bytes, file_fd)) {
        say_missing(engine, "they could not be written into the dump");
    }
}

void ml_dump_names_init(struct ml_engine *engine) {
    engine->names->kept_fd = -1;
    engine->names->dump_fd = -1;
}

void ml_dump_names_fini(struct ml_engine *engine) {
    ml_analyzer_close(engine->names->analyzer);
    engine->names->analyzer = NULL;
    ml_descriptor_close(&engine->names->kept_fd);
}
