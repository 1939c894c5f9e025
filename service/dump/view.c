#include "service/dump/view.h"

#include <stdio.h>

#include "service/snapshot/host_view.h"

enum { REASON_BYTES = 640 }; /* a trigger's reason has 512 */

static const char *const reasons[] = {MEMLOG_SERVICE_DUMP_REASON_WORDS};

void ml_dump_view_reason(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot) {
    const struct ml_string producer = ml_string_of("memlog");
    const struct memlog_service_decision *trigger = &snapshot->order.trigger;
    char text[REASON_BYTES];
    (void)snprintf(
        text,
        sizeof text,
        "memlog dump: %s%s%.*s",
        reasons[snapshot->order.reason],
        trigger->reason.count_bytes > 0 ? ": " : "",
        (int)trigger->reason.count_bytes,
        trigger->reason.data
    );
    const struct ml_string name = ml_string_of(text);
    const ml_trace_Trigger message = {
        .trigger_name = ml_dump_text(&name), .producer_name = ml_dump_text(&producer)};
    ml_trace_TracePacket head = ml_dump_standard_head(snapshot->order.now.boottime_ns);

    ml_dump_packet_append(packet, ml_trace_Trigger_fields, &message);
    ml_dump_packet_send(packet, &head, &head.trigger);
}

static void send_threads(
    struct ml_dump_packet *packet, uint32_t pid, const struct memlog_service_process_view *view
) {
    ml_trace_TracePacket head = ml_dump_standard_head(view->boottime_ns);

    /* As many as the contract permits fit into one packet. */
    for (uint32_t i = 0; i < view->threads.count; i++) {
        const struct memlog_service_thread_view *thread = &view->threads.items[i];
        const ml_trace_ProcessTree_Thread message = {
            .tid = (int32_t)thread->tid,
            .name = ml_dump_text(&thread->name),
            .tgid = (int32_t)pid,
        };
        ml_dump_packet_add(
            packet, ml_trace_ProcessTree_threads_tag, ml_trace_ProcessTree_Thread_fields, &message
        );
    }
    if (!ml_dump_packet_is_empty(packet)) {
        ml_dump_packet_send(packet, &head, &head.process_tree);
    }
}

/* As Chromium's memory-infra numbers them. */
static uint32_t protection_flags(uint32_t permissions) {
    enum { READ = 4, WRITE = 2, EXECUTE = 1, SHARED = 128 };
    return ((permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_READ) != 0 ? READ : 0) |
           ((permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE) != 0 ? WRITE : 0) |
           ((permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_EXECUTE) != 0 ? EXECUTE : 0) |
           ((permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_SHARED) != 0 ? SHARED : 0);
}

static bool
put_region(struct ml_dump_packet *packet, const struct memlog_service_memory_region *region) {
    const struct ml_string nameless = ml_string_of("[anon]");
    const ml_trace_SmapsEntry message = {
        .path = ml_dump_text(region->name.count_bytes > 0 ? &region->name : &nameless),
        .size_kb = region->size_kb,
        .private_dirty_kb = region->private_dirty_kb,
        .swap_kb = region->swap_kb,
        .start_address = region->start,
        .protection_flags = protection_flags(region->permissions),
        .private_clean_resident_kb = region->private_clean_kb,
        .shared_dirty_resident_kb = region->shared_dirty_kb,
        .shared_clean_resident_kb = region->shared_clean_kb,
        .proportional_resident_kb = region->proportional_kb,
    };
    return ml_dump_packet_put(
        packet, ml_trace_SmapsPacket_entries_tag, ml_trace_SmapsEntry_fields, &message
    );
}

/* In as many packets as it takes. */
static void send_memory(
    struct ml_dump_packet *packet, uint32_t pid, const struct memlog_service_process_view *view
) {
    uint32_t sent = 0;
    while (sent < view->regions.count && packet->status == ML_OK) {
        ml_trace_TracePacket head = ml_dump_standard_head(view->boottime_ns);
        const uint32_t first = sent;
        bool fits = true;
        ml_dump_packet_add_number(packet, ml_trace_SmapsPacket_pid_tag, pid);
        while (fits && sent < view->regions.count) {
            fits = put_region(packet, &view->regions.items[sent]);
            sent += fits ? 1 : 0;
        }
        if (sent == first) {
            ml_dump_packet_fail(packet, ML_BUG_SPACE);
            return;
        }
        ml_dump_packet_send(packet, &head, &head.smaps_packet);
    }
}

void ml_dump_view_processes(
    const struct ml_dump_standard *standard,
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot
) {
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        if (process->view && standard->trace_pids[i] == process->pid) {
            send_threads(packet, process->pid, &process->view->message->view);
            send_memory(packet, process->pid, &process->view->message->view);
        }
    }
}
