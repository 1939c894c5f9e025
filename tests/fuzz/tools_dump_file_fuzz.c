/* A dump file of any bytes, read as `memlog report` reads it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/model/trace_reader.h"
#include "tools/analyzer/report/report.h"
#include "tools/analyzer/stacks/stacks.h"

/* A profile is consistent whatever the file was (tools/analyzer/model/profile.h). */
static void check(const struct ml_profile_process *process) {
    for (size_t i = 0; i < process->nodes_count; i++) {
        const struct ml_profile_node *node = &process->nodes[i];
        REQUIRE(i == 0 || node->id > process->nodes[i - 1].id);
        REQUIRE(node->parent < node->id);
        REQUIRE(node->parent == 0 || ml_profile_node_at(process, node->parent) < i);
    }
    for (size_t i = 0; i < process->cells_count; i++) {
        const uint32_t node = process->cells[i].node;
        REQUIRE(node == 0 || ml_profile_node_at(process, node) != SIZE_MAX);
    }
}

static void report(const struct ml_profile *profile, FILE *nowhere) {
    struct ml_stacks stacks;
    if (ml_stacks_init(&stacks, profile) == ML_OK) {
        const struct ml_report report = {
            .profile = profile, .stacks = &stacks, .file_path = "x", .limit = 3};
        const struct ml_report_style style = {.width = 80};
        ml_report_json(&report, nowhere);
        ml_report_text(&report, &style, nowhere);
    }
    ml_stacks_fini(&stacks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    static FILE *nowhere;
    if (nowhere == NULL) {
        nowhere = fopen("/dev/null", "w");
    }
    if (count_bytes == 0) {
        return 0;
    }
    /* fmemopen() wants memory that it may write to. */
    uint8_t *copy = malloc(count_bytes);
    REQUIRE(copy != NULL && nowhere != NULL);
    memcpy(copy, data, count_bytes);
    FILE *file = fmemopen(copy, count_bytes, "r");
    REQUIRE(file != NULL);
    struct ml_profile profile = {0};
    const enum ml_status status = ml_trace_read(file, count_bytes % 8 == 7, &profile);
    for (size_t i = 0; i < profile.processes_count; i++) {
        check(&profile.processes[i]);
    }
    if (status == ML_OK) {
        report(&profile, nowhere);
    } else {
        REQUIRE(ml_trace_read_advice(status)[0] != '\0');
    }
    ml_profile_fini(&profile);
    (void)fclose(file);
    free(copy);
    return 0;
}
