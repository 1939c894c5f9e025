#include "tools/analyzer/formats/chrome_memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tools/analyzer/memory/components.h"

/* Chromium's bits of a mapping's permissions. */
enum { FLAG_EXECUTE = 1, FLAG_WRITE = 2, FLAG_READ = 4, FLAG_SHARED = 128 };

enum { KIB = 1024 };

void ml_chrome_hex_member(struct ml_json *json, const char *name, uint64_t value) {
    char text[sizeof "ffffffffffffffff"];

    snprintf(text, sizeof text, "%" PRIx64, value);
    ml_json_string_member(json, name, text);
}

void ml_chrome_scalar(struct ml_json *json, const char *name, const char *units, uint64_t value) {
    ml_json_open_member(json, name, '{');
    ml_json_string_member(json, "type", "scalar");
    ml_json_string_member(json, "units", units);
    ml_chrome_hex_member(json, "value", value);
    ml_json_close(json, '}');
}

void ml_chrome_identity(struct ml_json *json, const struct ml_profile_module *module) {
    char hex[ML_PROFILE_HEX_BYTES];
    size_t count = module->build_id.count_bytes;

    if (count == 0 || count > ML_BUILD_ID_MAX_BYTES) {
        return;
    }
    ml_json_string_member(json, "id", ml_profile_hex(module->build_id, hex));
    ml_chrome_hex_member(json, "lb", (uint64_t)module->bias);
}

/* How far into its file's ELF addresses the region begins; not told where it begins with them.
 * catapult's symbolize_trace asks for an address that much further than its place in the region. */
static void
put_place(struct ml_json *json, const struct ml_profile_module *module, uint64_t start) {
    const uint64_t address = start - (uint64_t)module->bias;

    if (address != 0) {
        ml_chrome_hex_member(json, "fo", address);
    }
}

void ml_chrome_module(
    struct ml_json *json,
    const struct ml_profile_process *process,
    const struct ml_profile_module *module
) {
    const struct ml_profile_text path = ml_profile_module_path(process, module);

    ml_json_open(json, '{');
    ml_chrome_hex_member(json, "sa", module->start);
    ml_chrome_hex_member(json, "sz", module->end - module->start);
    ml_json_number_member(json, "pf", FLAG_READ | FLAG_EXECUTE);
    ml_json_text_member(json, "mf", path.bytes, path.count_bytes);
    put_place(json, module, module->start);
    ml_chrome_identity(json, module);
    ml_json_open_member(json, "bs", '{');
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

static unsigned flags_of(uint32_t permissions) {
    static const struct {
        uint32_t permission;
        unsigned flag;
    } flags[] = {
        {MEMLOG_SERVICE_MEMORY_PERMISSION_READ, FLAG_READ},
        {MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE, FLAG_WRITE},
        {MEMLOG_SERVICE_MEMORY_PERMISSION_EXECUTE, FLAG_EXECUTE},
        {MEMLOG_SERVICE_MEMORY_PERMISSION_SHARED, FLAG_SHARED},
    };
    unsigned sum = 0;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        sum |= (permissions & flags[i].permission) != 0 ? flags[i].flag : 0;
    }
    return sum;
}

static bool
begins_in(const struct ml_profile_module *module, const struct ml_profile_region *region) {
    return region->start >= module->start && region->start < module->end;
}

/* The module that the region is of, by its file; NULL: none. */
static const struct ml_profile_module *
module_of(const struct ml_profile_process *process, const struct ml_profile_region *region) {
    for (size_t i = 0; region->inode != 0 && i < process->modules_count; i++) {
        if (begins_in(&process->modules[i], region)) {
            return &process->modules[i];
        }
    }
    return NULL;
}

static void put_region(
    struct ml_json *json,
    const struct ml_profile_process *process,
    const struct ml_profile_region *region
) {
    const struct ml_profile_module *module = module_of(process, region);

    ml_json_open(json, '{');
    ml_chrome_hex_member(json, "sa", region->start);
    ml_chrome_hex_member(json, "sz", region->size_kb * KIB);
    ml_json_number_member(json, "pf", flags_of(region->permissions));
    ml_json_text_member(json, "mf", region->name.bytes, region->name.count_bytes);
    if (module) {
        put_place(json, module, region->start);
        ml_chrome_identity(json, module);
    }
    ml_json_open_member(json, "bs", '{');
    ml_chrome_hex_member(json, "pss", region->proportional_kb * KIB);
    ml_chrome_hex_member(json, "pc", region->private_clean_kb * KIB);
    ml_chrome_hex_member(json, "pd", region->private_dirty_kb * KIB);
    ml_chrome_hex_member(json, "sc", region->shared_clean_kb * KIB);
    ml_chrome_hex_member(json, "sd", region->shared_dirty_kb * KIB);
    ml_chrome_hex_member(json, "sw", region->swap_kb * KIB);
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

/* A module may have been loaded after the mappings were read. */
static bool
has_region(const struct ml_profile_process *process, const struct ml_profile_module *module) {
    for (size_t i = 0; i < process->regions_count; i++) {
        if (process->regions[i].inode != 0 && begins_in(module, &process->regions[i])) {
            return true;
        }
    }
    return false;
}

void ml_chrome_regions(struct ml_json *json, const struct ml_profile_process *process) {
    for (size_t i = 0; i < process->regions_count; i++) {
        put_region(json, process, &process->regions[i]);
    }
    for (size_t i = 0; i < process->modules_count; i++) {
        if (!has_region(process, &process->modules[i])) {
            ml_chrome_module(json, process, &process->modules[i]);
        }
    }
}

static void put_component(
    struct ml_json *json,
    const char *name,
    uint64_t guid,
    const struct ml_component_figures *figures
) {
    ml_json_open_member(json, name, '{');
    ml_chrome_hex_member(json, "guid", guid);
    ml_json_open_member(json, "attrs", '{');
    ml_chrome_scalar(json, "size", "bytes", figures->private + figures->shared);
    ml_chrome_scalar(json, "private_size", "bytes", figures->private);
    ml_chrome_scalar(json, "proportional_size", "bytes", figures->proportional);
    ml_chrome_scalar(json, "swapped_size", "bytes", figures->swapped);
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

void ml_chrome_components(
    struct ml_json *json, const struct ml_profile_process *process, uint64_t pid
) {
    enum { NAME_BYTES = 64 };
    const uint64_t first_guid = ((uint64_t)1 << 48) + pid * (ML_COMPONENTS + 1);
    struct ml_components components;
    char name[NAME_BYTES];

    if (process->regions_count == 0) {
        return;
    }
    ml_components_of(process, &components);
    put_component(json, "components", first_guid, &components.all);
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        snprintf(name, sizeof name, "components/%s", ml_component_name(i));
        put_component(json, name, first_guid + 1 + i, &components.of[i]);
    }
}
