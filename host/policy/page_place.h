/* Where the live page is to be found: the value of --page. Room: host. Context: any; caller's
 * storage; pure.
 *
 * One rule: without the person's own word nobody beyond this machine's loopback, or this user's
 * files, is spoken to; names are never looked up. */
#ifndef MEMLOG_HOST_POLICY_PAGE_PLACE_H
#define MEMLOG_HOST_POLICY_PAGE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

/* An IPv6 address in brackets fits; sun_path of unix(7) with its NUL. */
enum { ML_PAGE_ADDRESS_BYTES = 64, ML_PAGE_PATH_BYTES = 108 };

enum ml_page_kind { ML_PAGE_NONE = 0, ML_PAGE_TCP, ML_PAGE_UNIX };

struct ml_page_place {
    enum ml_page_kind kind;
    bool asked;                          /* somebody said where: not finding it there is an error */
    char address[ML_PAGE_ADDRESS_BYTES]; /* ML_PAGE_TCP: "127.0.0.1", "::1"; no brackets */
    uint16_t port;                       /* 0: a free one */
    char path[ML_PAGE_PATH_BYTES];       /* ML_PAGE_UNIX */
};

/* 127.0.0.1, a free port. */
struct ml_page_place ml_page_place_default(void);

/* Shape:  "" as the default; PORT; ADDRESS:PORT, with [ADDRESS]:PORT for IPv6 and localhost for
 * 127.0.0.1; unix:PATH. Errors: ML_PEER_FORM, ML_PEER_RANGE, with an error message. */
ML_NODISCARD enum ml_status ml_page_place_parse(
    const char *value, struct ml_page_place *out_place, struct ml_error_message *error
);

/* Only this machine can reach it. */
bool ml_page_place_is_local(const struct ml_page_place *place);

/* Whether the page may be there: others than this machine reach it only where that is wanted. */
bool ml_page_place_allowed(
    const struct ml_page_place *place, bool is_remote_wanted, struct ml_error_message *error
);

#endif
