/* What `memlog collect` is told. Room: host. Context: any; pure. */
#ifndef MEMLOG_HOST_COLLECT_OPTIONS_H
#define MEMLOG_HOST_COLLECT_OPTIONS_H

#include <stdbool.h>

#include "base/option_table.h"
#include "host/policy/page_place.h"

enum { ML_COLLECT_FOLDERS_MAX = 8 };

/* A folder into which machines put their reports, which are that team's. */
struct ml_collect_folder {
    char team[33];
    const char *path;
};

struct ml_collect_options {
    const char *store;      /* the path of its database; NULL: in ClickHouse */
    const char *clickhouse; /* URL[,URL...] */
    const char *store_auth; /* USER PASSWORD of ClickHouse; NULL: none */
    const char *tokens;     /* NULL: STORE.tokens, or SPOOL.tokens, made if it is missing */
    const char *spool;      /* NULL: STORE.spool */
    struct ml_page_place place;
    bool is_remote; /* others than this machine may reach it */
    const char *tls_cert, *tls_key, *client_ca;
    struct ml_collect_folder folders[ML_COLLECT_FOLDERS_MAX];
    size_t folders_count;
    uint64_t body_max_bytes;
    uint64_t team_bytes;  /* of a team's reports that are kept; 0: any number */
    uint32_t team_rate;   /* reports of a team a minute; 0: any number */
    uint32_t retention_s; /* 0: for ever */
    uint32_t question_limit_s;
    bool rebuilds; /* fill an empty store from the bodies, and end */
    bool quiet;
};

/* Defaults, before the table is read. */
struct ml_collect_options ml_collect_options_default(void);

/* What does not fit together. NULL: all does. */
const char *ml_collect_options_wrong(const struct ml_collect_options *options);

extern const struct ml_option_table ml_collect_table;

#endif
