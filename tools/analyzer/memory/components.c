#include "tools/analyzer/memory/components.h"

static void take(void *context, const struct ml_owned *owned) {
    struct ml_components *components = context;

    ml_component_figures_add(&components->of[owned->kind], &owned->figures);
}

void ml_components_of(const struct ml_profile_process *process, struct ml_components *out) {
    const struct ml_owner_visitor visitor = {.take = take, .context = out};

    *out = (struct ml_components){0};
    for (size_t i = 0; i < process->regions_count; i++) {
        const struct ml_component_figures figures = ml_region_figures(&process->regions[i]);
        ml_component_figures_add(&out->all, &figures);
    }
    out->moved =
        (int64_t)((uint64_t)ml_owners_visit(process, &visitor) + process->heap_elsewhere_bytes);
}
