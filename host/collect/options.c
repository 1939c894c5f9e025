#include "host/collect/options.h"

#include <string.h>

enum {
    BODY_MAX_BYTES = 64 << 20, /* memlog's own bodies have 10 MB at most, unless they are told */
    BODY_LEAST_BYTES = 4096,
    TEAM_RATE = 6000, /* 1,000 machines, six times a minute */
    RETENTION_S = 90 * 86400,
    QUESTION_LIMIT_S = 30,
    QUESTION_LIMIT_MAX_S = 7 * 86400,
    SECONDS_MAX = 100 * 365 * 86400U
};

/* 1,000 machines, four reports of 90 KB a day, 90 days. */
#define TEAM_BYTES ((uint64_t)32 << 30)

static bool read_store(void *to, const char *value, struct ml_error_message *why) {
    static const char sqlite[] = "sqlite:";
    static const char clickhouse[] = "clickhouse:";
    struct ml_collect_options *options = to;
    options->store = options->clickhouse = NULL;
    if (strncmp(value, sqlite, sizeof(sqlite) - 1) == 0 && value[sizeof(sqlite) - 1] != '\0') {
        options->store = value + sizeof(sqlite) - 1;
        return true;
    }
    if (strncmp(value, clickhouse, sizeof(clickhouse) - 1) == 0 &&
        value[sizeof(clickhouse) - 1] != '\0') {
        options->clickhouse = value + sizeof(clickhouse) - 1;
        return true;
    }
    ml_error_set(why, "a store is sqlite:PATH or clickhouse:URL[,URL...]");
    return false;
}

static bool read_listen(void *to, const char *value, struct ml_error_message *why) {
    return ml_page_place_parse(value, &((struct ml_collect_options *)to)->place, why) == ML_OK;
}

/* TEAM:DIR, or DIR alone. */
static bool read_folder(void *to, const char *value, struct ml_error_message *why) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
    struct ml_collect_options *options = to;
    const size_t count = strspn(value, letters);
    const bool has_team = count > 0 && value[count] == ':';
    struct ml_collect_folder folder = {.team = "default", .path = value};
    if (has_team && count < sizeof(folder.team)) {
        memcpy(folder.team, value, count);
        folder.team[count] = '\0';
        folder.path = value + count + 1;
    }
    if (folder.path[0] == '\0' || (has_team && count >= sizeof(folder.team)) ||
        options->folders_count == ML_COLLECT_FOLDERS_MAX) {
        ml_error_set(why, "it is TEAM:DIR, at most %d of them", ML_COLLECT_FOLDERS_MAX);
        return false;
    }
    options->folders[options->folders_count++] = folder;
    return true;
}

static const struct ml_option options_list[] = {
    {.name = "--store",
     ML_READ_BY(read_store),
     .value = "KIND:PLACE",
     .help = "where reports are kept to be asked about: sqlite:PATH, made if it is missing, or "
             "clickhouse:URL[,URL...], servers at http://HOST:PORT/DATABASE ('memlog')"},
    {.name = "--store-auth",
     ML_PATH_TO(struct ml_collect_options, store_auth),
     .value = "FILE",
     .help = "who asks ClickHouse: one line, USER PASSWORD"},
    {.name = "--listen",
     ML_READ_BY(read_listen),
     .value = "[ADDRESS:]PORT",
     .help =
         "where reports come in and questions are asked (127.0.0.1:8765); unix:PATH is a socket"},
    {.name = "--remote",
     ML_FLAG_TO(struct ml_collect_options, is_remote),
     .help = "other machines may reach it; give it TLS, too"},
    {.name = "--tokens",
     ML_PATH_TO(struct ml_collect_options, tokens),
     .value = "FILE",
     .help = "who may send and who may ask: lines TEAM write|read|admin TOKEN (PATH.tokens, made "
             "with new ones if it is missing; DIR.tokens with ClickHouse)"},
    {.name = "--spool",
     ML_PATH_TO(struct ml_collect_options, spool),
     .value = "DIR",
     .help = "where the reports themselves are kept (PATH.spool); wanted with ClickHouse"},
    {.name = "--folder",
     ML_READ_BY(read_folder),
     .value = "[TEAM:]DIR",
     .help = "take reports from a folder, too, into which machines put them (--upload=DIR); they "
             "are TEAM's (default), and go into 'taken' in it"},
    {.name = "--retention",
     ML_SECONDS_TO(struct ml_collect_options, retention_s),
     .most = SECONDS_MAX,
     .value = "TIME",
     .help = "how long a report is kept: 90d (default), 12h, ...; 0: for ever"},
    {.name = "--question-limit",
     ML_SECONDS_TO(struct ml_collect_options, question_limit_s),
     .least = 1,
     .most = QUESTION_LIMIT_MAX_S,
     .value = "TIME",
     .help = "how long an answer may take (30s); who asked for more is told 503"},
    {.name = "--max-bytes",
     ML_SIZE_TO(struct ml_collect_options, body_max_bytes),
     .least = BODY_LEAST_BYTES,
     .value = "BYTES",
     .help = "how large a report may be (64M); a sender of memlog's prunes harder then"},
    {.name = "--team-rate",
     ML_COUNT_TO(struct ml_collect_options, team_rate),
     .most = UINT32_MAX,
     .value = "COUNT",
     .help = "how many reports a minute a team may send (6000); 0: any number"},
    {.name = "--team-bytes",
     ML_SIZE_TO(struct ml_collect_options, team_bytes),
     .value = "BYTES",
     .help = "how much of the spool a team's reports may fill (32G); 0: all of it"},
    {.name = "--tls-cert",
     ML_PATH_TO(struct ml_collect_options, tls_cert),
     .value = "FILE",
     .help = "the certificate to show, PEM"},
    {.name = "--tls-key",
     ML_PATH_TO(struct ml_collect_options, tls_key),
     .value = "FILE",
     .help = "its key, PEM"},
    {.name = "--client-ca",
     ML_PATH_TO(struct ml_collect_options, client_ca),
     .value = "FILE",
     .help = "who signs the machines' certificates: a report counts for the machine whose "
             "certificate came with it, whatever it says itself"},
    {.name = "--rebuild",
     ML_FLAG_TO(struct ml_collect_options, rebuilds),
     .help = "fill the store from the reports that are kept, and end; an empty one, else nothing "
             "changes"},
    {.name = "--quiet",
     .short_name = "-q",
     ML_FLAG_TO(struct ml_collect_options, quiet),
     .help = "say nothing but errors"},
};

const struct ml_option_table ml_collect_table = {
    .program = "memlog",
    .name = "collect",
    .summary = "take in the reports of many machines, and answer questions about them",
    .usage = "--store=KIND:PLACE [OPTIONS]",
    .about =
        "Takes in what memlog run --upload=http://ADDRESS:PORT/ sends, keeps each report once, "
        "and adds them up by program, build and stack. 'memlog fleet' asks.",
    ML_OPTIONS(options_list),
    .example = "memlog collect --store=sqlite:fleet.db",
};

struct ml_collect_options ml_collect_options_default(void) {
    return (struct ml_collect_options){
        .place = {.kind = ML_PAGE_TCP, .asked = true, .address = "127.0.0.1", .port = 8765},
        .body_max_bytes = BODY_MAX_BYTES,
        .team_rate = TEAM_RATE,
        .team_bytes = TEAM_BYTES,
        .retention_s = RETENTION_S,
        .question_limit_s = QUESTION_LIMIT_S,
    };
}

const char *ml_collect_options_wrong(const struct ml_collect_options *options) {
    if (options->store == NULL && options->clickhouse == NULL) {
        return "say where reports are kept: --store=sqlite:PATH, or clickhouse:URL";
    }
    if (options->clickhouse != NULL && options->spool == NULL) {
        return "say where the reports themselves are kept, and wait while ClickHouse is away: "
               "--spool=DIR";
    }
    if (options->clickhouse == NULL && options->store_auth != NULL) {
        return "--store-auth is for --store=clickhouse:URL";
    }
    if ((options->tls_cert != NULL) != (options->tls_key != NULL)) {
        return "--tls-cert and --tls-key belong together";
    }
    if (options->client_ca != NULL && options->tls_cert == NULL) {
        return "--client-ca wants --tls-cert and --tls-key";
    }
    if (!ml_page_place_is_local(&options->place) && !options->is_remote) {
        return "other machines would reach it there: say --remote, too";
    }
    if (!ml_page_place_is_local(&options->place) && options->tls_cert == NULL) {
        return "tokens would be readable on their way: give it --tls-cert and --tls-key, or listen "
               "at 127.0.0.1 behind a server that has them";
    }
    return NULL;
}
