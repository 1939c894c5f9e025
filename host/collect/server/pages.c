#include "host/collect/server/pages.h"

#include "host/http/http.h"

bool ml_collect_pages_answer(struct ml_http_request *request) {
    const struct ml_http_asset *asset =
        ml_http_asset_find(ml_collect_assets, ml_http_path(request));
    if (asset != NULL) {
        ml_http_asset_answer(request, asset, NULL);
    }
    return asset != NULL;
}
