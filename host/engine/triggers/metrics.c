/* Figures of triggers and uploads, as Prometheus reads them. Room: host. */
#include <inttypes.h>
#include <stdio.h>

#include "base/metric_label.h"
#include "host/engine/state.h"
#include "host/engine/triggers/triggers.h"

static void put_decisions(FILE *out, const struct ml_engine *engine, bool is_open) {
    ml_metric_head(
        out,
        "memlog_trigger_decisions",
        true,
        is_open,
        "Decisions for and against a dump, by trigger."
    );
    for (unsigned kind = 0; kind < ML_TRIGGER_KINDS; kind++) {
        for (unsigned dump = 0; dump < 2; dump++) {
            (void)fprintf(
                out,
                "memlog_trigger_decisions_total{trigger=\"%s\",dump=\"%s\"} %" PRIu64 "\n",
                ml_engine_trigger_name((enum memlog_service_trigger_kind)kind),
                dump == 1 ? "yes" : "no",
                engine->triggers->decisions[kind][dump]
            );
        }
    }
    ml_metric_head(out, "memlog_trigger_dumps", true, is_open, "Dumps that triggers have made.");
    (void)fprintf(out, "memlog_trigger_dumps_total %" PRIu64 "\n", engine->triggers->dumps_count);
}

void ml_engine_put_metrics(FILE *out, const struct ml_engine *engine, bool is_open) {
    put_decisions(out, engine, is_open);
    if (engine->uploader == NULL) {
        return;
    }
    const struct memlog_host_uploads figures = ml_uploader_figures(engine->uploader);
    const struct {
        const char *name, *help;
        uint64_t value;
    } counters[] = {
        {"memlog_uploads_sent", "Reports that have arrived.", figures.sent},
        {"memlog_uploads_sent_bytes", "Bytes of reports that have arrived.", figures.sent_bytes},
        {"memlog_uploads_retries", "Tries that failed and come again.", figures.retries},
        {"memlog_uploads_given_up", "Reports that were given up.", figures.given_up},
        {"memlog_uploads_refused", "Reports that were never promised.", figures.refused},
    };
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        ml_metric_head(out, counters[i].name, true, is_open, counters[i].help);
        (void)fprintf(out, "%s_total %" PRIu64 "\n", counters[i].name, counters[i].value);
    }
    ml_metric_head(out, "memlog_uploads_waiting", false, is_open, "Reports in the spool.");
    (void)fprintf(out, "memlog_uploads_waiting %u\n", figures.waiting);
}
