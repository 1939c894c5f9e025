#include "host/policy/page_place.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

#define UNIX_PREFIX "unix:"

struct ml_page_place ml_page_place_default(void) {
    return (struct ml_page_place){.kind = ML_PAGE_TCP, .address = "127.0.0.1"};
}

static enum ml_status wrong(struct ml_error_message *error) {
    ml_error_set(
        error, "PORT, ADDRESS:PORT or unix:PATH is wanted, such as 8080 or 127.0.0.1:8080"
    );
    return ML_PEER_FORM;
}

static enum ml_status
parse_path(const char *value, struct ml_page_place *out_place, struct ml_error_message *error) {
    const char *path = value + strlen(UNIX_PREFIX);
    if (path[0] == '\0') {
        return wrong(error);
    }
    if (strlen(path) >= sizeof(out_place->path)) {
        ml_error_set(error, "a socket's path has at most %zu bytes", sizeof(out_place->path) - 1);
        return ML_PEER_RANGE;
    }
    out_place->kind = ML_PAGE_UNIX;
    (void)snprintf(out_place->path, sizeof(out_place->path), "%s", path);
    return ML_OK;
}

/* Take the address before the last colon, without its brackets. False: it is not an address. */
static bool take_address(const char *text, size_t count, struct ml_page_place *place) {
    unsigned char binary[sizeof(struct in6_addr)];
    const bool in_brackets = count > 2 && text[0] == '[' && text[count - 1] == ']';
    if (in_brackets) {
        text++;
        count -= 2;
    }
    if (count == 0 || count >= sizeof(place->address)) {
        return false;
    }
    (void)snprintf(place->address, sizeof(place->address), "%.*s", (int)count, text);
    if (strcmp(place->address, "localhost") == 0 && !in_brackets) {
        *place = ml_page_place_default();
        return true;
    }
    return inet_pton(in_brackets ? AF_INET6 : AF_INET, place->address, binary) == 1;
}

enum ml_status ml_page_place_parse(
    const char *value, struct ml_page_place *out_place, struct ml_error_message *error
) {
    *out_place = ml_page_place_default();
    if (value == NULL || value[0] == '\0') {
        return ML_OK;
    }
    out_place->asked = true;
    if (strncmp(value, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
        return parse_path(value, out_place, error);
    }
    const char *colon = strrchr(value, ':');
    const char *port = colon != NULL ? colon + 1 : value;
    uint64_t number = 0;
    if (colon != NULL && !take_address(value, (size_t)(colon - value), out_place)) {
        return wrong(error);
    }
    if (!ml_count_read(port, UINT16_MAX, &number)) {
        return wrong(error);
    }
    out_place->asked = true;
    out_place->port = (uint16_t)number;
    return ML_OK;
}

bool ml_page_place_is_local(const struct ml_page_place *place) {
    return place->kind != ML_PAGE_TCP || strncmp(place->address, "127.", 4) == 0 ||
           strcmp(place->address, "::1") == 0;
}

bool ml_page_place_allowed(
    const struct ml_page_place *place, bool is_remote_wanted, struct ml_error_message *error
) {
    if (is_remote_wanted || ml_page_place_is_local(place)) {
        return true;
    }
    ml_error_set(
        error,
        "--page=%s: others than this machine could reach the page there, and its token would "
        "travel in the clear; --page-remote says that this is wanted",
        place->address
    );
    return false;
}
