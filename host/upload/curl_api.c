#include "host/upload/curl_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct symbol {
    const char *name;
    size_t offset;
};

/* False: one of them is not there. */
static bool find_all(struct ml_curl_api *api, const struct symbol *symbols, size_t symbols_count) {
    bool found = true;
    for (size_t i = 0; i < symbols_count; i++) {
        void *function = dlsym(api->handle, symbols[i].name);
        memcpy((char *)api + symbols[i].offset, &function, sizeof(function));
        found = found && function != NULL;
    }
    return found;
}

bool ml_curl_api_load(struct ml_curl_api *api) {
    static const struct symbol symbols[] = {
        {"curl_global_init", offsetof(struct ml_curl_api, global_init)},
        {"curl_easy_init", offsetof(struct ml_curl_api, easy_init)},
        {"curl_easy_setopt", offsetof(struct ml_curl_api, easy_setopt)},
        {"curl_easy_getinfo", offsetof(struct ml_curl_api, easy_getinfo)},
        {"curl_easy_strerror", offsetof(struct ml_curl_api, easy_strerror)},
        {"curl_easy_perform", offsetof(struct ml_curl_api, easy_perform)},
        {"curl_easy_cleanup", offsetof(struct ml_curl_api, easy_cleanup)},
        {"curl_multi_init", offsetof(struct ml_curl_api, multi_init)},
        {"curl_multi_setopt", offsetof(struct ml_curl_api, multi_setopt)},
        {"curl_multi_add_handle", offsetof(struct ml_curl_api, multi_add_handle)},
        {"curl_multi_remove_handle", offsetof(struct ml_curl_api, multi_remove_handle)},
        {"curl_multi_socket_action", offsetof(struct ml_curl_api, multi_socket_action)},
        {"curl_multi_assign", offsetof(struct ml_curl_api, multi_assign)},
        {"curl_multi_info_read", offsetof(struct ml_curl_api, multi_info_read)},
        {"curl_multi_cleanup", offsetof(struct ml_curl_api, multi_cleanup)},
        {"curl_slist_append", offsetof(struct ml_curl_api, slist_append)},
        {"curl_slist_free_all", offsetof(struct ml_curl_api, slist_free_all)},
    };
    static const struct symbol digests[] = {
        {"EVP_sha256", offsetof(struct ml_curl_api, digest_sha256)},
        {"EVP_MD_CTX_new", offsetof(struct ml_curl_api, digest_new)},
        {"EVP_DigestInit_ex", offsetof(struct ml_curl_api, digest_begin)},
        {"EVP_DigestUpdate", offsetof(struct ml_curl_api, digest_add)},
        {"EVP_DigestFinal_ex", offsetof(struct ml_curl_api, digest_end)},
        {"EVP_MD_CTX_free", offsetof(struct ml_curl_api, digest_free)},
    };
    *api = (struct ml_curl_api){.handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL)};
    if (api->handle == NULL) {
        return false;
    }
    if (!find_all(api, symbols, sizeof(symbols) / sizeof(symbols[0]))) {
        (void)dlclose(api->handle);
        api->handle = NULL;
        return false;
    }
    api->has_digest = find_all(api, digests, sizeof(digests) / sizeof(digests[0]));
    return api->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}
