#include "service/dump/writer.h"

#include <errno.h>
#include <unistd.h>

#include "service/dump/counters.h"
#include "service/dump/exact.h"
#include "service/dump/packet.h"
#include "service/dump/profile.h"
#include "service/dump/standard.h"
#include "service/dump/view.h"

static enum ml_status write_all(void *context, const uint8_t *bytes, size_t count_bytes) {
    const int *fd = context;

    while (count_bytes > 0) {
        ssize_t written = write(*fd, bytes, count_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return ML_ENV_SYSTEM;
        }
        bytes += written;
        count_bytes -= (size_t)written;
    }
    return ML_OK;
}

struct ml_dump_sink ml_dump_sink_over(const int *fd) {
    return (struct ml_dump_sink){.write = write_all, .context = (void *)(uintptr_t)fd};
}

static void write_unrecorded(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot) {
    for (uint32_t i = 0; packet->status == ML_OK && i < snapshot->unrecorded_count; i++) {
        ml_dump_exact_unrecorded(packet, &snapshot->unrecorded[i]);
    }
}

/* For everybody: the run with the clocks first (Perfetto wants them), then who was there, then one
 * process after another, so that a file cut short loses the last ones only. */
static void write_everything(
    struct ml_dump_packet *packet,
    struct ml_dump_standard *standard,
    const struct ml_snapshot *snapshot
) {
    ml_dump_exact_run(packet, snapshot);
    ml_dump_view_reason(packet, snapshot);
    ml_dump_standard_heads(standard, packet, snapshot);
    ml_dump_view_processes(standard, packet, snapshot);
    ml_dump_exact_heads(packet, snapshot);
    ml_dump_exact_tree(packet, snapshot);
    write_unrecorded(packet, snapshot);
    for (uint32_t i = 0; packet->status == ML_OK && i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        ml_dump_exact_tables(packet, process);
        ml_dump_profile(
            packet, snapshot, process, standard->trace_pids[i], &standard->next_sequence
        );
        ml_dump_counters(packet, standard, snapshot, i);
    }
}

/* For our own analyzer alone. */
static void write_exact(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot) {
    ml_dump_exact_run(packet, snapshot);
    ml_dump_exact_heads(packet, snapshot);
    ml_dump_exact_tree(packet, snapshot);
    write_unrecorded(packet, snapshot);
    for (uint32_t i = 0; packet->status == ML_OK && i < snapshot->processes_count; i++) {
        ml_dump_exact_tables(packet, &snapshot->processes[i]);
    }
}

enum ml_status ml_dump_write(
    const struct ml_snapshot *snapshot, const struct ml_dump_sink *sink, uint64_t *out_written_bytes
) {
    struct ml_dump_packet packet;
    struct ml_dump_standard standard;
    enum ml_status status = ML_OK;

    ml_dump_packet_init(&packet, sink);
    ml_dump_packet_fail(&packet, ml_dump_standard_init(&standard, snapshot));
    if (packet.status == ML_OK && snapshot->content == ML_SNAPSHOT_EVERYTHING) {
        write_everything(&packet, &standard, snapshot);
    } else if (packet.status == ML_OK) {
        write_exact(&packet, snapshot);
    }
    for (uint32_t i = 0; packet.status == ML_OK && i < snapshot->not_profiled_count; i++) {
        if (snapshot->not_profiled[i].has_other_profiler) {
            ml_dump_profile_rejected(
                &packet, snapshot, snapshot->not_profiled[i].pid, standard.next_sequence++
            );
        }
    }
    if (packet.status == ML_OK) {
        ml_dump_exact_end(&packet);
    }

    *out_written_bytes = packet.written_bytes;
    status = packet.status;
    ml_dump_standard_fini(&standard);
    ml_dump_packet_fini(&packet);
    return status;
}
