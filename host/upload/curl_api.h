/* libcurl, loaded when an upload is wanted, or ClickHouse, and not before: it brings thirty
 * libraries with it, which a run without uploads need not start with. Room: host. */
#ifndef MEMLOG_HOST_UPLOAD_CURL_API_H
#define MEMLOG_HOST_UPLOAD_CURL_API_H

#include <stdbool.h>
#include <stddef.h>

#define CURL_DISABLE_TYPECHECK 1
#include <curl/curl.h>

struct ml_curl_api {
    void *handle;
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
    const char *(*easy_strerror)(CURLcode code);
    CURLcode (*easy_perform)(CURL *easy);
    void (*easy_cleanup)(CURL *easy);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_setopt)(CURLM *multi, CURLMoption option, ...);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_socket_action)(CURLM *multi, curl_socket_t fd, int events, int *running);
    CURLMcode (*multi_assign)(CURLM *multi, curl_socket_t fd, void *context);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *queued);
    CURLMcode (*multi_cleanup)(CURLM *multi);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
    /* Of the crypto library that libcurl brings, for S3 alone (its names: EVP_...); has_digest is
     * false where that is another one than OpenSSL. */
    bool has_digest;
    const void *(*digest_sha256)(void);
    void *(*digest_new)(void);
    int (*digest_begin)(void *digest, const void *kind, void *engine);
    int (*digest_add)(void *digest, const void *bytes, size_t count);
    int (*digest_end)(void *digest, unsigned char *out_hash, unsigned *out_count);
    void (*digest_free)(void *digest);
};

/* False: there is no libcurl here, or an older one. */
bool ml_curl_api_load(struct ml_curl_api *api);

#endif
