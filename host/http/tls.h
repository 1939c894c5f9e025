/* TLS of an HTTP server: libmicrohttpd's, with GnuTLS below it. Room: host. Context: the server's
 * thread.
 *
 * One rule: a client's name is said only of a certificate that the trusted authority has signed. */
#ifndef MEMLOG_HOST_HTTP_TLS_H
#define MEMLOG_HOST_HTTP_TLS_H

#include <microhttpd.h>
#include <stddef.h>

#include "host/http/http.h"

enum { ML_HTTP_TLS_OPTIONS = 4 };

/* How a server speaks it. The texts are PEM, and borrowed. */
struct ml_http_tls {
    struct MHD_OptionItem options[ML_HTTP_TLS_OPTIONS];
    bool asks_clients;
};

/* `client_ca` NULL: clients are not asked for a certificate. */
struct ml_http_tls ml_http_tls_of(const char *cert, const char *key, const char *client_ca);

/* The common name of the client's certificate; "": it showed none that was signed. */
void ml_http_client_name(
    const struct ml_http_tls *tls,
    const struct ml_http_request *request,
    char *out_name,
    size_t name_bytes
);

#endif
