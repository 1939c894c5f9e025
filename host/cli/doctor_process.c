/* What `memlog doctor` finds of a process that runs. Room: host. Context: its own process. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <ev.h>

#include "host/attach/precondition.h"
#include "host/attach/tracer.h"
#include "host/cli/doctor_internal.h"
#include "host/process/info.h"
#include "host/process/paths.h"
#include "host/sockets/socket_directory.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

enum { PS_TIMEOUT_MS = 10000 };

bool ml_doctor_forbidden(
    struct ml_findings *findings,
    const struct ml_never_list *list,
    const struct ml_command_line *line,
    const char *executable
) {
    const int number = ml_never_list_match(list, line->joined, executable);
    if (number > 0) {
        ml_doctor_find(
            findings,
            ML_DOCTOR_FAIL,
            "never",
            "line %d of %s forbids %s: it is never recorded, whoever asks",
            number,
            list->path,
            executable[0] != '\0' ? executable : line->joined
        );
    }
    return number > 0;
}

/* True: the newest running memlog knows the process, or does not answer; a finding says which. */
static bool check_in_host(struct ml_findings *findings, uint32_t pid) {
    struct ml_error_message error = {.text = ""};
    const struct ml_channel_options options = {.loop = NULL};
    struct ml_channel *channel = NULL;
    int fd = -1;
    if (ml_socket_directory_connect(NULL, &fd, &error) != ML_OK) {
        ml_doctor_find(findings, ML_DOCTOR_NOTE, "host", "%s", error.text);
        return false;
    }
    const struct memlog_host_ps_request request = {.version = MEMLOG_HOST_HOST_VERSION};
    struct memlog_host_ps_reply reply;
    bool known = false;
    enum ml_status status = ml_channel_new(fd, &options, &channel);
    if (status == ML_OK) {
        status = memlog_host_ps_wait(ml_channel_port(channel), &request, PS_TIMEOUT_MS, &reply);
    }
    if (status != ML_OK) {
        ml_doctor_find(
            findings, ML_DOCTOR_FAIL, "host", "it does not answer: %s", ml_status_text(status)
        );
        ml_channel_free(channel);
        return true;
    }
    for (uint32_t i = 0; i < reply.processes.count; i++) {
        const struct memlog_host_process_row *row = &reply.processes.items[i];
        if (row->pid == pid && strncmp(row->state.data, "running", row->state.count_bytes) == 0) {
            known = true;
            ml_doctor_find(
                findings,
                row->recording ? ML_DOCTOR_OK : ML_DOCTOR_FAIL,
                "process",
                row->recording ? "it is being recorded: %" PRIu64 " events so far%s%.*s"
                               : "it is not recorded after %" PRIu64 " events%s%.*s; memlog start",
                row->events,
                row->note.count_bytes > 0 ? ", " : "",
                (int)row->note.count_bytes,
                row->note.data
            );
        }
    }
    ml_channel_free(channel);
    return known;
}

void ml_doctor_process(
    struct ml_findings *findings,
    const struct ml_never_list *never,
    uint32_t pid,
    const char *allocators
) {
    char executable[PATH_MAX];
    struct ml_command_line line = {.count = 0};
    ml_process_executable((pid_t)pid, executable, sizeof(executable));
    if (ml_process_command_line((pid_t)pid, &line) == ML_OK) {
        const bool forbidden = ml_doctor_forbidden(findings, never, &line, executable);
        ml_command_line_fini(&line);
        if (forbidden) {
            return;
        }
    }
    if (check_in_host(findings, pid)) {
        return;
    }
    char why[ML_ATTACHABLE_TEXT_BYTES];
    if (ml_process_maps((pid_t)pid, ML_PRELOAD_FILE)) {
        ml_doctor_find(
            findings,
            ML_DOCTOR_FAIL,
            "process",
            "memlog is loaded into it, but its host is not the newest one of yours, or has ended"
        );
        return;
    }
    ml_attach_why_not((pid_t)pid, why);
    if (why[0] != '\0') {
        ml_doctor_find(findings, ML_DOCTOR_FAIL, "process", "it cannot be attached to: %s", why);
        return;
    }
    ml_doctor_find(
        findings,
        ML_DOCTOR_OK,
        "process",
        "it was not started under memlog; 'memlog attach %" PRIu32
        "' records it from then on, but not what it had allocated before",
        pid
    );
    ml_doctor_allocator_of(findings, pid, allocators);
}

/* ---- repair */

struct repair {
    struct ev_loop *loop;
    struct ml_tracer *tracer;
    struct ml_findings *findings;
    uint32_t pid;
};

static void on_repaired(void *context, const struct ml_tracer_end *end) {
    struct repair *repair = context;
    const bool is_done = end->is_finished && end->outcome == MEMLOG_TRACER_OUTCOME_DONE;
    const bool is_gone = end->is_finished && end->outcome == MEMLOG_TRACER_OUTCOME_GONE;
    if (is_done) {
        ml_doctor_find(
            repair->findings,
            ML_DOCTOR_OK,
            "repair",
            "process %" PRIu32 " is as it was without memlog%s%s",
            repair->pid,
            end->reason[0] != '\0' ? ": " : "",
            end->reason
        );
    } else {
        ml_doctor_find(
            repair->findings,
            ML_DOCTOR_FAIL,
            "repair",
            "process %" PRIu32 " is not repaired: %s",
            repair->pid,
            is_gone ? "it has ended" : end->reason
        );
    }
    ev_break(repair->loop, EVBREAK_ALL);
}

void ml_doctor_repair(struct ml_findings *findings, uint32_t pid) {
    struct ml_error_message error = {.text = ""};
    char path[PATH_MAX];
    char why[ML_ATTACHABLE_TEXT_BYTES];
    struct ml_inherited inherited;
    struct repair repair = {.findings = findings, .pid = pid};
    pid_t tracer_pid = 0;
    ml_attachable_why_not((pid_t)pid, why);
    if (why[0] != '\0') {
        ml_doctor_find(findings, ML_DOCTOR_FAIL, "repair", "%s", why);
        return;
    }
    ml_inherited_read(&inherited);
    repair.loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    const struct ml_tracer_setup setup = {
        .loop = repair.loop,
        .path = path,
        .inherited = &inherited,
        .task = ML_TRACER_REPAIR,
        .pid = (pid_t)pid,
        .start_ticks = ml_process_facts((pid_t)pid).start_ticks,
        .allocators = "",
        .library = "",
        .socket_path = "",
        .on_end = on_repaired,
        .context = &repair,
    };
    enum ml_status status = repair.loop != NULL ? ML_OK : ML_ENV_MEMORY;
    if (status == ML_OK) {
        status = ml_paths_find(ML_TRACER_FILE, path, &error);
    }
    if (status == ML_OK) {
        status = ml_tracer_start(&setup, &repair.tracer, &tracer_pid, &error);
    }
    if (status == ML_OK) {
        ev_run(repair.loop, 0);
        ml_tracer_free(repair.tracer);
    } else {
        ml_doctor_find(findings, ML_DOCTOR_FAIL, "repair", "%s", error.text);
    }
    if (repair.loop != NULL) {
        ev_loop_destroy(repair.loop);
    }
}
