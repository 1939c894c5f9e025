#include "tools/analyzer/symbols/dwarf_functions.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/model/search.h"
#include "tools/analyzer/progress/progress.h"

/* Deeper DIEs are ignored: namespaces, classes, functions, blocks. */
enum { DEPTH_MAX = 64 };

/* So many overlapping ranges (folded functions) are searched outwards. */
enum { OVERLAP_MAX = 16 };

static bool range_add(struct ml_dwarf_ranges *ranges, struct ml_dwarf_range range) {
    if (range.end <= range.start) {
        return true;
    }
    if (!ML_GROW(ranges->ranges, ranges->capacity, ranges->count + 1)) {
        return false;
    }
    ranges->ranges[ranges->count++] = range;
    return true;
}

/* Every piece of code of a DIE. False: no memory. */
static bool
ranges_of(struct ml_dwarf_ranges *ranges, Dwarf_Die *die, uint32_t unit, Dwarf_Off entry) {
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    ptrdiff_t offset = dwarf_ranges(die, 0, &base, &start, &end);

    while (offset > 0) {
        struct ml_dwarf_range range = {.start = start, .end = end, .unit = unit, .entry = entry};
        if (!range_add(ranges, range)) {
            return false;
        }
        offset = dwarf_ranges(die, offset, &base, &start, &end);
    }
    return true;
}

static int order_ranges(const void *left, const void *right) {
    const struct ml_dwarf_range *a = left;
    const struct ml_dwarf_range *b = right;

    if (a->start != b->start) {
        return (a->start > b->start) - (a->start < b->start);
    }
    return (a->end < b->end) - (a->end > b->end); /* the wider one first */
}

/* The innermost range around the address; NULL: none. */
static const struct ml_dwarf_range *
range_find(const struct ml_dwarf_ranges *ranges, uint64_t address) {
    size_t begun = ml_keys_until(ML_KEYS(ranges->ranges, ranges->count, start), address);

    for (size_t back = 0; back < OVERLAP_MAX && back < begun; back++) {
        const struct ml_dwarf_range *range = &ranges->ranges[begun - 1 - back];
        if (address < range->end) {
            return range;
        }
    }
    return NULL;
}

static uint8_t unit_type(Dwarf_Die *unit) {
    uint8_t type = 0;

    (void)dwarf_cu_info(unit->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL);
    return type;
}

bool ml_dwarf_functions_load(struct ml_dwarf_functions *functions, Dwfl_Module *module) {
    Dwarf_Addr bias = 0;
    Dwarf_Die *die = NULL;

    functions->dwarf = dwfl_module_getdwarf(module, &bias);
    functions->bias = bias;
    if (!functions->dwarf) {
        return true;
    }
    for (die = dwfl_module_nextcu(module, NULL, &bias); die;
         die = dwfl_module_nextcu(module, die, &bias)) {
        uint32_t unit = (uint32_t)functions->units_count;
        ml_progress_still();
        if (!ML_GROW(functions->units, functions->units_capacity, functions->units_count + 1) ||
            !ranges_of(&functions->ranges, die, unit, 0)) {
            return false;
        }
        functions->units[functions->units_count++] = (struct ml_dwarf_unit){.die = *die};
        functions->is_split = functions->is_split || unit_type(die) == DW_UT_skeleton;
    }
    ML_SORT(functions->ranges.ranges, functions->ranges.count, order_ranges);
    return true;
}

void ml_dwarf_functions_fini(struct ml_dwarf_functions *functions) {
    for (size_t i = 0; i < functions->units_count; i++) {
        free(functions->units[i].functions.ranges);
        ml_dwarf_names_fini(&functions->units[i].names);
    }
    free(functions->units);
    free(functions->ranges.ranges);
    *functions = (struct ml_dwarf_functions){0};
}

/* Whether functions can stand inside. */
static bool holds_functions(int tag) {
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type: /* Rust */
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
        return true;
    default:
        return false;
    }
}

/* Where a walk is. */
struct walking {
    struct ml_dwarf_unit *unit;
    uint32_t number; /* the unit's */
    bool is_scoped;  /* its language has functions within something */
};

static bool
functions_walk(const struct walking *walking, Dwarf_Die *parent, uint32_t scope, int depth) {
    struct ml_dwarf_unit *unit = walking->unit;
    Dwarf_Die child;
    int more = depth < DEPTH_MAX ? dwarf_child(parent, &child) : 1;

    while (more == 0) {
        int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram) {
            Dwarf_Off entry = dwarf_dieoffset(&child);
            if (!ranges_of(&unit->functions, &child, walking->number, entry)) {
                return false;
            }
            if (walking->is_scoped) {
                ml_dwarf_names_add(&unit->names, scope, &child);
            }
        }
        if (holds_functions(tag)) {
            uint32_t inner =
                walking->is_scoped ? ml_dwarf_names_scope(&unit->names, scope, &child) : 0;
            if (!functions_walk(walking, &child, inner, depth + 1)) {
                return false;
            }
        }
        more = dwarf_siblingof(&child, &child);
    }
    return true;
}

/* In C no scope is a part of a function's name. */
static bool is_scoped(Dwarf_Die *die) {
    switch (dwarf_srclang(die)) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_Mips_Assembler:
        return false;
    default:
        return true;
    }
}

/* Find the unit's functions. Without memory, or without the file of a split unit, it has none: then
 * names come from the symbol table. */
static void unit_walk(struct ml_dwarf_unit *unit, uint32_t number) {
    struct walking walking = {.unit = unit, .number = number};
    Dwarf_Die body = {0};

    unit->is_walked = true;
    unit->body = unit->die;
    if (unit_type(&unit->die) == DW_UT_skeleton &&
        dwarf_cu_info(unit->die.cu, NULL, NULL, NULL, &body, NULL, NULL, NULL) == 0 && body.addr) {
        unit->body = body;
    }
    walking.is_scoped = is_scoped(&unit->body);
    (void)functions_walk(&walking, &unit->body, 0, 0);
    ML_SORT(unit->functions.ranges, unit->functions.count, order_ranges);
}

static const char *linkage_of(Dwarf_Die *die) {
    Dwarf_Attribute memory;
    Dwarf_Attribute *attribute = dwarf_attr_integrate(die, DW_AT_linkage_name, &memory);

    if (!attribute) {
        attribute = dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &memory);
    }
    return attribute ? dwarf_formstring(attribute) : NULL;
}

static int number_of(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute memory;
    Dwarf_Word value = 0;

    if (dwarf_formudata(dwarf_attr(die, name, &memory), &value) != 0 || value > INT32_MAX) {
        return 0;
    }
    return (int)value;
}

static const char *file_of(Dwarf_Die *unit, int number) {
    Dwarf_Files *files = NULL;
    size_t count = 0;

    if (dwarf_getsrcfiles(unit, &files, &count) != 0 || (size_t)number >= count) {
        return NULL;
    }
    return dwarf_filesrc(files, (size_t)number, NULL, NULL);
}

/* From a function inwards: every inlined function around the address, outermost first. */
static size_t
inlines_find(Dwarf_Die *function, uint64_t address, Dwarf_Die *out_inlines, size_t capacity) {
    Dwarf_Die scope = *function;
    size_t count = 0;

    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        Dwarf_Die child;
        int more = dwarf_child(&scope, &child);

        while (more == 0) {
            int tag = dwarf_tag(&child);
            bool is_scope = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
                            tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
            if (is_scope && dwarf_haspc(&child, address) > 0) {
                break;
            }
            more = dwarf_siblingof(&child, &child);
        }
        if (more != 0) {
            break;
        }
        if (dwarf_tag(&child) == DW_TAG_inlined_subroutine && count < capacity) {
            out_inlines[count++] = child;
        }
        scope = child;
    }
    return count;
}

static void line_find(Dwarf_Die *unit, uint64_t address, struct ml_dwarf_frame *frame) {
    Dwarf_Line *line = dwarf_getsrc_die(unit, address);

    if (line) {
        frame->file = dwarf_linesrc(line, NULL, NULL);
        dwarf_lineno(line, &frame->line);
    }
}

/* The unit that the DIE stands in, walked; NULL: in another file. */
static struct ml_dwarf_unit *
unit_of(struct ml_dwarf_functions *functions, struct ml_dwarf_unit *likely, const Dwarf_Die *die) {
    if (likely->body.cu == die->cu) {
        return likely;
    }
    for (size_t i = 0; i < functions->units_count; i++) {
        struct ml_dwarf_unit *unit = &functions->units[i];
        if (unit->die.cu == die->cu) {
            if (!unit->is_walked) {
                unit_walk(unit, (uint32_t)i);
            }
            return unit;
        }
    }
    return NULL;
}

static void name_find(
    struct ml_dwarf_functions *functions,
    struct ml_dwarf_unit *unit,
    Dwarf_Die *die,
    struct ml_dwarf_frame *frame
) {
    const char *name = NULL;

    frame->linkage = linkage_of(die);
    if (!frame->linkage) {
        Dwarf_Die declaration = ml_dwarf_names_declaration(die);
        struct ml_dwarf_unit *other = unit_of(functions, unit, &declaration);
        name = other ? ml_dwarf_names_find(&other->names, &declaration) : NULL;
    }
    frame->name = name ? name : dwarf_diename(die);
}

size_t ml_dwarf_functions_find(
    struct ml_dwarf_functions *functions,
    uint64_t address,
    struct ml_dwarf_frame *out_frames,
    size_t capacity
) {
    const struct ml_dwarf_range *range = NULL;
    struct ml_dwarf_unit *unit = NULL;
    struct ml_dwarf_frame at = {0};
    Dwarf_Die function;
    Dwarf_Die inlines[DEPTH_MAX];
    size_t inlines_count = 0;
    size_t count = 0;

    address -= functions->bias;
    range = range_find(&functions->ranges, address);
    if (!range || capacity == 0) {
        return 0;
    }
    unit = &functions->units[range->unit];
    line_find(&unit->die, address, &at);
    if (!unit->is_walked) {
        unit_walk(unit, range->unit);
    }
    range = range_find(&unit->functions, address);
    if (!range || !dwarf_offdie(dwarf_cu_getdwarf(unit->body.cu), range->entry, &function)) {
        out_frames[0] = at;
        return at.file ? 1 : 0;
    }
    inlines_count = inlines_find(&function, address, inlines, DEPTH_MAX);
    while (inlines_count > 0 && count + 1 < capacity) {
        Dwarf_Die *inlined = &inlines[--inlines_count];
        name_find(functions, unit, inlined, &at);
        at.inlined = true;
        out_frames[count++] = at;
        at.file = file_of(&unit->body, number_of(inlined, DW_AT_call_file));
        at.line = number_of(inlined, DW_AT_call_line);
    }
    name_find(functions, unit, &function, &at);
    at.inlined = false;
    out_frames[count++] = at;
    return count;
}
