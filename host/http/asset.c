#include "host/http/asset.h"

#include <string.h>

#include "host/http/http.h"

const struct ml_http_asset *
ml_http_asset_find(const struct ml_http_asset *table, const char *path) {
    for (const struct ml_http_asset *one = table; one->path != NULL; one++) {
        if (strcmp(one->path, path) == 0) {
            return one;
        }
    }
    return NULL;
}

void ml_http_asset_answer(
    struct ml_http_request *request, const struct ml_http_asset *asset, const char *cookie
) {
    const struct ml_http_answer answer = {
        .status = 200,
        .content_type = asset->content_type,
        .bytes = asset->bytes,
        .bytes_count = asset->count,
        .cookie = cookie,
    };
    ml_http_answer(request, &answer);
}
