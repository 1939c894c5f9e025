/* Who may speak to the live page. Room: host. Context: the host's one thread; pure but for the
 * tokens' birth.
 *
 * One rule: a web page of somebody else's, open in the same browser, can send anything but read
 * nothing: so the Host header is ours (a name that was made to point here is not), secrets come in
 * what such a page cannot forge, and they are compared in constant time. */
#ifndef MEMLOG_HOST_POLICY_PAGE_GUARD_H
#define MEMLOG_HOST_POLICY_PAGE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "host/policy/page_place.h"
#include "ipc/wire/ml_status.h"

/* 128 random bits in hex. */
enum { ML_PAGE_TOKEN_BYTES = 33, ML_PAGE_COOKIE_NAME_BYTES = 32, ML_PAGE_URL_BYTES = 256 };

struct ml_page_guard {
    char token[ML_PAGE_TOKEN_BYTES];        /* who knows it may do everything */
    char page_token[ML_PAGE_TOKEN_BYTES];   /* only our own page can read it: sent with its POSTs */
    char cookie[ML_PAGE_COOKIE_NAME_BYTES]; /* its name; ports share their cookies */
    struct ml_page_place place;             /* where we listen; its port is the real one */
};

/* How the asker has shown that he knows the token. */
enum ml_page_proof {
    ML_PAGE_PROOF_NONE = 0,
    ML_PAGE_PROOF_COOKIE, /* a browser sends it by itself, whoever made it ask */
    ML_PAGE_PROOF_TOKEN
};

/* What a request says of itself; NULL: nothing. */
struct ml_page_claim {
    const char *host;
    const char *authorization;
    const char *query_token;
    const char *cookies;
    const char *origin;
    const char *fetch_site;
    const char *page_token;
};

/* Make the tokens. `place` is where it listens, with the real port. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status
ml_page_guard_init(struct ml_page_guard *guard, const struct ml_page_place *place);

/* Whether the Host header names us. */
bool ml_page_guard_knows_host(const struct ml_page_guard *guard, const char *host);

/* Whether a request that comes from this site may be answered at all, by its Origin and
 * Sec-Fetch-Site. Who is no browser says neither. */
bool ml_page_guard_is_own_site(
    const struct ml_page_guard *guard, const struct ml_page_claim *claim
);

enum ml_page_proof
ml_page_guard_proof(const struct ml_page_guard *guard, const struct ml_page_claim *claim);

/* Whether it may act: by token, or by cookie with the page's own token. */
bool ml_page_guard_may_act(const struct ml_page_guard *guard, const struct ml_page_claim *claim);

/* The address that people open, token and all. */
void ml_page_guard_url(const struct ml_page_guard *guard, char out_url[ML_PAGE_URL_BYTES]);

/* Equal texts; how long it takes tells nothing of where they differ. */
bool ml_page_guard_same(const char *secret, const char *given, size_t given_count);

#endif
