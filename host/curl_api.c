#include "host/curl_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

bool ml_curl_api_load(struct ml_curl_api *api) {
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
        {"curl_global_init", offsetof(struct ml_curl_api, global_init)},
        {"curl_easy_init", offsetof(struct ml_curl_api, easy_init)},
        {"curl_easy_setopt", offsetof(struct ml_curl_api, easy_setopt)},
        {"curl_easy_getinfo", offsetof(struct ml_curl_api, easy_getinfo)},
        {"curl_easy_strerror", offsetof(struct ml_curl_api, easy_strerror)},
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
    *api = (struct ml_curl_api){.handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL)};
    for (size_t i = 0; api->handle != NULL && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *function = dlsym(api->handle, symbols[i].name);
        if (function == NULL) {
            (void)dlclose(api->handle);
            api->handle = NULL;
        }
        memcpy((char *)api + symbols[i].offset, &function, sizeof(function));
    }
    if (api->handle != NULL) {
        void *function = dlsym(api->handle, "SHA256");
        memcpy(&api->sha256, &function, sizeof(function));
    }
    return api->handle != NULL && api->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}
