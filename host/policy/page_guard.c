#include "host/policy/page_guard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

enum { TOKEN_RANDOM_BYTES = 16, HOST_BYTES = 128 };

static enum ml_status make_token(char out_token[ML_PAGE_TOKEN_BYTES]) {
    unsigned char bytes[TOKEN_RANDOM_BYTES];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return ML_ENV_SYSTEM;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        (void)snprintf(out_token + 2 * i, 3, "%02x", bytes[i]);
    }
    return ML_OK;
}

enum ml_status ml_page_guard_init(struct ml_page_guard *guard, const struct ml_page_place *place) {
    *guard = (struct ml_page_guard){.place = *place};
    (void)snprintf(guard->cookie, sizeof(guard->cookie), "memlog-%u", (unsigned)place->port);
    enum ml_status status = make_token(guard->token);
    return status == ML_OK ? make_token(guard->page_token) : status;
}

bool ml_page_guard_same(const char *secret, const char *given, size_t given_count) {
    const size_t count = strlen(secret);
    unsigned different = given_count == count ? 0 : 1;
    for (size_t i = 0; i < count; i++) {
        const char byte = i < given_count ? given[i] : '\0';
        different |= (unsigned)(unsigned char)(byte ^ secret[i]);
    }
    return different == 0;
}

static bool is_same(const char *secret, const char *given) {
    return given != NULL && ml_page_guard_same(secret, given, strlen(given));
}

/* Whether the host is a literal address. Unlike a name, DNS cannot make it point elsewhere. */
static bool is_address(const char *text) {
    unsigned char binary[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, text, binary) == 1 || inet_pton(AF_INET6, text, binary) == 1;
}

static bool is_any(const char *address) {
    return strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
}

/* Split a Host header into name and port; without a port it is 80. False: it is malformed. */
static bool split_host(const char *text, char out_name[HOST_BYTES], unsigned long *out_port) {
    const char *end = text + strcspn(text, ":");
    const char *name = text;
    if (text[0] == '[') {
        name = text + 1;
        end = strchr(name, ']');
    }
    if (end == NULL || end == name || (size_t)(end - name) >= HOST_BYTES) {
        return false;
    }
    (void)snprintf(out_name, HOST_BYTES, "%.*s", (int)(end - name), name);
    end += text[0] == '[';
    *out_port = 80;
    if (*end == '\0') {
        return true;
    }
    char *rest = NULL;
    if (*end != ':' || end[1] < '0' || end[1] > '9') {
        return false;
    }
    *out_port = strtoul(end + 1, &rest, 10);
    return *rest == '\0' && *out_port <= UINT16_MAX;
}

bool ml_page_guard_knows_host(const struct ml_page_guard *guard, const char *host) {
    const struct ml_page_place *place = &guard->place;
    char name[HOST_BYTES];
    unsigned long port = 0;
    if (host == NULL || !split_host(host, name, &port)) {
        return false;
    }
    if (place->kind == ML_PAGE_UNIX) {
        return strcasecmp(name, "localhost") == 0;
    }
    if (port != place->port) {
        return false;
    }
    if (strcmp(name, place->address) == 0) {
        return true;
    }
    if (ml_page_place_is_local(place) || is_any(place->address)) {
        if (strcasecmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0) {
            return true;
        }
    }
    return is_any(place->address) && is_address(name);
}

bool ml_page_guard_is_own_site(
    const struct ml_page_guard *guard, const struct ml_page_claim *claim
) {
    static const char scheme[] = "http://";
    if (claim->fetch_site != NULL && strcmp(claim->fetch_site, "same-origin") != 0 &&
        strcmp(claim->fetch_site, "none") != 0) {
        return false;
    }
    if (claim->origin == NULL) {
        return true;
    }
    /* Same origin: the page that sends the request has the name and port of the Host header. */
    return strncmp(claim->origin, scheme, strlen(scheme)) == 0 && claim->host != NULL &&
           strcasecmp(claim->origin + strlen(scheme), claim->host) == 0 &&
           ml_page_guard_knows_host(guard, claim->host);
}

/* "token T" or "Bearer T". */
static bool is_authorized(const struct ml_page_guard *guard, const char *authorization) {
    static const char *const schemes[] = {"token ", "Bearer "};
    for (size_t i = 0; authorization != NULL && i < 2; i++) {
        const size_t count = strlen(schemes[i]);
        if (strncasecmp(authorization, schemes[i], count) == 0) {
            const char *given = authorization + count;
            return is_same(guard->token, given + strspn(given, " "));
        }
    }
    return false;
}

/* Look for our cookie among all that the browser has for this machine, whatever the port. */
static bool has_cookie(const struct ml_page_guard *guard, const char *cookies) {
    const size_t name_count = strlen(guard->cookie);
    const char *at = cookies;
    while (at != NULL && *at != '\0') {
        at += strspn(at, " ;");
        const size_t count = strcspn(at, ";");
        if (count > name_count && strncmp(at, guard->cookie, name_count) == 0 &&
            at[name_count] == '=' &&
            ml_page_guard_same(guard->token, at + name_count + 1, count - name_count - 1)) {
            return true;
        }
        at += count;
    }
    return false;
}

enum ml_page_proof
ml_page_guard_proof(const struct ml_page_guard *guard, const struct ml_page_claim *claim) {
    if (is_authorized(guard, claim->authorization) || is_same(guard->token, claim->query_token)) {
        return ML_PAGE_PROOF_TOKEN;
    }
    return has_cookie(guard, claim->cookies) ? ML_PAGE_PROOF_COOKIE : ML_PAGE_PROOF_NONE;
}

bool ml_page_guard_may_act(const struct ml_page_guard *guard, const struct ml_page_claim *claim) {
    switch (ml_page_guard_proof(guard, claim)) {
    case ML_PAGE_PROOF_TOKEN:
        return true;
    case ML_PAGE_PROOF_COOKIE:
        return is_same(guard->page_token, claim->page_token);
    case ML_PAGE_PROOF_NONE:
        break;
    }
    return false;
}

void ml_page_guard_url(const struct ml_page_guard *guard, char out_url[ML_PAGE_URL_BYTES]) {
    const struct ml_page_place *place = &guard->place;
    if (place->kind == ML_PAGE_UNIX) {
        (void)snprintf(out_url, ML_PAGE_URL_BYTES, "unix:%s, token %s", place->path, guard->token);
        return;
    }
    const bool is_ipv6 = strchr(place->address, ':') != NULL;
    (void)snprintf(
        out_url,
        ML_PAGE_URL_BYTES,
        "http://%s%s%s:%u/?token=%s",
        is_ipv6 ? "[" : "",
        place->address,
        is_ipv6 ? "]" : "",
        (unsigned)place->port,
        guard->token
    );
}
