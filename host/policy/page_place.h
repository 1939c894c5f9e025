/* Where the live page listens: the value of --page. Room: host. Context: any; caller's storage;
 * pure.
 *
 * One rule: without --page-remote only this machine's loopback or a socket file can reach the page.
 * Names are never looked up. */
#ifndef MEMLOG_HOST_POLICY_PAGE_PLACE_H
#define MEMLOG_HOST_POLICY_PAGE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

/* An address: IPv6 in brackets fits. A path: sun_path of unix(7) with its NUL. */
enum { ML_PAGE_ADDRESS_BYTES = 64, ML_PAGE_PATH_BYTES = 108 };

enum ml_page_kind { ML_PAGE_NONE = 0, ML_PAGE_TCP, ML_PAGE_UNIX };

struct ml_page_place {
    enum ml_page_kind kind;
    bool asked;                          /* given by a person: it is an error if it cannot open */
    char address[ML_PAGE_ADDRESS_BYTES]; /* ML_PAGE_TCP: "127.0.0.1", "::1"; no brackets */
    uint16_t port;                       /* 0: a free one */
    char path[ML_PAGE_PATH_BYTES];       /* ML_PAGE_UNIX */
};

/* 127.0.0.1 and a free port. */
struct ml_page_place ml_page_place_default(void);

/* Read the value of --page.
 *
 * Shape:  "" for the default; PORT; ADDRESS:PORT, with [ADDRESS]:PORT for IPv6 and localhost for
 *         127.0.0.1; unix:PATH.
 * Errors: ML_PEER_FORM, ML_PEER_RANGE, with an error message. */
ML_NODISCARD enum ml_status ml_page_place_parse(
    const char *value, struct ml_page_place *out_place, struct ml_error_message *error
);

/* Whether only this machine can reach it. */
bool ml_page_place_is_local(const struct ml_page_place *place);

/* Whether the page may listen there. A place that other machines reach needs --page-remote. */
bool ml_page_place_allowed(
    const struct ml_page_place *place, bool is_remote_wanted, struct ml_error_message *error
);

#endif
