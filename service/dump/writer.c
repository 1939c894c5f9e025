#include "service/dump/writer.h"

#include "service/dump/counters.h"
#include "service/dump/exact.h"
#include "service/dump/packet.h"
#include "service/dump/profile.h"
#include "service/dump/standard.h"
#include "service/dump/unrecorded.h"
#include "service/dump/view.h"

/* The run with the clocks comes first, as Perfetto requires. Then come all processes' heads, then
 * one process after another, so that a file that is cut loses the last ones only. A snapshot that
 * has not everything is for the analyzer: its exact packets alone. */
static void write_packets(
    struct ml_dump_packet *packet,
    struct ml_dump_standard *standard,
    const struct ml_snapshot *snapshot
) {
    const bool everything = snapshot->order.content == MEMLOG_SERVICE_DUMP_CONTENT_EVERYTHING;
    ml_dump_exact_run(packet, snapshot);
    if (everything) {
        ml_dump_view_reason(packet, snapshot);
        ml_dump_standard_heads(standard, packet, snapshot);
        ml_dump_view_processes(standard, packet, snapshot);
        ml_dump_unrecorded(packet, standard, snapshot);
    }
    ml_dump_exact_heads(packet, snapshot);
    ml_dump_exact_tree(packet, snapshot);
    for (uint32_t i = 0; packet->status == ML_OK && i < snapshot->order.unrecorded.count; i++) {
        ml_dump_exact_unrecorded(packet, &snapshot->order.unrecorded.items[i]);
    }
    for (uint32_t i = 0; packet->status == ML_OK && i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        ml_dump_exact_tables(packet, process);
        if (everything) {
            uint32_t *sequence = &standard->next_sequence;
            ml_dump_profile(packet, snapshot, process, standard->trace_pids[i], sequence);
            ml_dump_counters(packet, standard, snapshot, i);
        }
    }
}

enum ml_status ml_dump_write(
    const struct ml_snapshot *snapshot, const struct ml_dump_sink *sink, uint64_t *out_written_bytes
) {
    struct ml_dump_packet packet;
    struct ml_dump_standard standard;

    ml_dump_packet_init(&packet, sink);
    ml_dump_packet_fail(&packet, ml_dump_standard_init(&standard, snapshot));
    if (packet.status == ML_OK) {
        write_packets(&packet, &standard, snapshot);
    }
    for (uint32_t i = 0; packet.status == ML_OK && i < snapshot->order.not_profiled.count; i++) {
        if (snapshot->order.not_profiled.items[i].has_other_profiler) {
            ml_dump_profile_rejected(
                &packet,
                snapshot,
                snapshot->order.not_profiled.items[i].pid,
                standard.next_sequence++
            );
        }
    }
    if (packet.status == ML_OK) {
        ml_dump_exact_end(&packet);
    }

    *out_written_bytes = packet.written_bytes;
    const enum ml_status status = packet.status;
    ml_dump_standard_fini(&standard);
    ml_dump_packet_fini(&packet);
    return status;
}
