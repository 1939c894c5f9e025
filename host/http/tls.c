#include "host/http/tls.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "host/http/internal.h"

struct ml_http_tls ml_http_tls_of(const char *cert, const char *key, const char *client_ca) {
    struct ml_http_tls tls = {.asks_clients = client_ca != NULL};
    unsigned count = 0;
    tls.options[count++] = (struct MHD_OptionItem
    ){.option = MHD_OPTION_HTTPS_MEM_CERT, .ptr_value = (void *)(uintptr_t)cert};
    tls.options[count++] = (struct MHD_OptionItem
    ){.option = MHD_OPTION_HTTPS_MEM_KEY, .ptr_value = (void *)(uintptr_t)key};
    if (client_ca != NULL) {
        tls.options[count++] = (struct MHD_OptionItem
        ){.option = MHD_OPTION_HTTPS_MEM_TRUST, .ptr_value = (void *)(uintptr_t)client_ca};
    }
    tls.options[count] = (struct MHD_OptionItem){.option = MHD_OPTION_END};
    return tls;
}

/* libmicrohttpd asks a client for its certificate and refuses none. */
static bool is_trusted(gnutls_session_t session) {
    unsigned trouble = 1;
    return gnutls_certificate_verify_peers2(session, &trouble) == 0 && trouble == 0;
}

static gnutls_session_t session_of(const struct ml_http_request *request) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info != NULL ? (gnutls_session_t)info->tls_session : NULL;
}

void ml_http_client_name(
    const struct ml_http_tls *tls,
    const struct ml_http_request *request,
    char *out_name,
    size_t name_bytes
) {
    gnutls_session_t session = tls != NULL && tls->asks_clients ? session_of(request) : NULL;
    unsigned count = 0;
    gnutls_x509_crt_t certificate = NULL;
    out_name[0] = '\0';
    if (session == NULL || !is_trusted(session)) {
        return;
    }
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &count);
    if (shown == NULL || count == 0 || gnutls_x509_crt_init(&certificate) != 0) {
        return;
    }
    if (gnutls_x509_crt_import(certificate, &shown[0], GNUTLS_X509_FMT_DER) != 0 ||
        gnutls_x509_crt_get_dn_by_oid(
            certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, out_name, &name_bytes
        ) != 0) {
        out_name[0] = '\0';
    }
    gnutls_x509_crt_deinit(certificate);
}
