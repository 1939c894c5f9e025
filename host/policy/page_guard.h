/* Access control of the live page. Room: host. Context: the host's one thread; pure, except that
 * ml_page_guard_init draws the tokens.
 *
 * One rule: a foreign web page in the same browser can send any request and read no answer. So the
 * Host header must name this page, which excludes DNS rebinding. Secrets come in parts of a request
 * that a foreign page cannot forge, and are compared in constant time. */
#ifndef MEMLOG_HOST_POLICY_PAGE_GUARD_H
#define MEMLOG_HOST_POLICY_PAGE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "host/policy/page_place.h"
#include "ipc/wire/ml_status.h"

/* 128 random bits in hex. */
enum { ML_PAGE_TOKEN_BYTES = 33, ML_PAGE_COOKIE_NAME_BYTES = 32, ML_PAGE_URL_BYTES = 256 };

struct ml_page_guard {
    char token[ML_PAGE_TOKEN_BYTES];        /* permits everything */
    char page_token[ML_PAGE_TOKEN_BYTES];   /* only our own page can read it; sent with its POSTs */
    char cookie[ML_PAGE_COOKIE_NAME_BYTES]; /* name with the port, as ports share their cookies */
    struct ml_page_place place;             /* where the page listens, with the actual port */
};

/* How a request proves that its sender knows the token. */
enum ml_page_proof {
    ML_PAGE_PROOF_NONE = 0,
    ML_PAGE_PROOF_COOKIE, /* weaker: a browser sends it whichever page made the request */
    ML_PAGE_PROOF_TOKEN
};

/* The fields of a request that the guard judges; NULL: the request has no such field. */
struct ml_page_claim {
    const char *host;
    const char *authorization;
    const char *query_token;
    const char *cookies;
    const char *origin;
    const char *fetch_site;
    const char *page_token;
};

/* Make the tokens. `place` is where the page listens, with the actual port.
 * Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status
ml_page_guard_init(struct ml_page_guard *guard, const struct ml_page_place *place);

/* Whether the Host header names this page. */
bool ml_page_guard_knows_host(const struct ml_page_guard *guard, const char *host);

/* Whether Origin and Sec-Fetch-Site permit to answer the request at all. A program that is no
 * browser sends neither, which is permitted. */
bool ml_page_guard_is_own_site(
    const struct ml_page_guard *guard, const struct ml_page_claim *claim
);

enum ml_page_proof
ml_page_guard_proof(const struct ml_page_guard *guard, const struct ml_page_claim *claim);

/* Whether the request may change something: it has the token, or the cookie and the page token. */
bool ml_page_guard_may_act(const struct ml_page_guard *guard, const struct ml_page_claim *claim);

/* The address that people open, with the token. */
void ml_page_guard_url(const struct ml_page_guard *guard, char out_url[ML_PAGE_URL_BYTES]);

/* Whether two texts are equal. The time it takes does not depend on where they differ. */
bool ml_page_guard_same(const char *secret, const char *given, size_t given_count);

#endif
