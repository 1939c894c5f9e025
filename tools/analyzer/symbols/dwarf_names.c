#include "tools/analyzer/symbols/dwarf_names.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/search.h"

/* Nobody reads a longer name. Hostile DWARF may nest without limit. */
enum { SCOPES_MAX = 32, NAME_MAX_BYTES = 4096 };

/* From a copy or an inlined call to the declaration are two steps; one is a reserve. */
enum { ORIGINS_MAX = 4 };

void ml_dwarf_names_fini(struct ml_dwarf_names *names) {
    free(names->scopes);
    free(names->named);
    ml_arena_fini(&names->arena);
    *names = (struct ml_dwarf_names){0};
}

/* In gcc's DWARF a lambda's class has no name. Nor has a class that is only the type of a variable.
 */
static const char nameless_class[] = "(anonymous class)";

/* What the DIE adds to the names within it; NULL: nothing. */
static const char *scope_name(Dwarf_Die *die) {
    const char *name = dwarf_diename(die);

    switch (dwarf_tag(die)) {
    case DW_TAG_namespace:
        return name ? name : "(anonymous namespace)";
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
        return name ? name : nameless_class;
    case DW_TAG_module:
    case DW_TAG_enumeration_type:
    case DW_TAG_subprogram:
        return name;
    default:
        return NULL;
    }
}

uint32_t ml_dwarf_names_scope(struct ml_dwarf_names *names, uint32_t parent, Dwarf_Die *die) {
    const char *name = scope_name(die);

    if (!name || !ML_GROW(names->scopes, names->scopes_capacity, names->scopes_count + 1)) {
        return parent;
    }
    names->scopes[names->scopes_count++] = (struct ml_dwarf_scope){.name = name, .parent = parent};
    return (uint32_t)names->scopes_count;
}

void ml_dwarf_names_add(struct ml_dwarf_names *names, uint32_t scope, Dwarf_Die *function) {
    if (scope == 0 || dwarf_hasattr(function, DW_AT_linkage_name) ||
        dwarf_hasattr(function, DW_AT_specification) ||
        dwarf_hasattr(function, DW_AT_abstract_origin) ||
        !ML_GROW(names->named, names->named_capacity, names->named_count + 1)) {
        return;
    }
    names->named[names->named_count++] =
        (struct ml_dwarf_named){.entry = dwarf_dieoffset(function), .scope = scope};
}

Dwarf_Die ml_dwarf_names_declaration(const Dwarf_Die *function) {
    static const unsigned ways[] = {DW_AT_abstract_origin, DW_AT_specification};
    Dwarf_Die die = *function;

    for (int steps = 0; steps < ORIGINS_MAX; steps++) {
        Dwarf_Attribute attribute;
        Dwarf_Die next;
        bool is_more = false;
        for (size_t i = 0; !is_more && i < sizeof ways / sizeof ways[0]; i++) {
            is_more = dwarf_attr(&die, ways[i], &attribute) != NULL &&
                      dwarf_formref_die(&attribute, &next) != NULL;
        }
        if (!is_more) {
            break;
        }
        die = next;
    }
    return die;
}

static const char *put_together(struct ml_dwarf_names *names, uint32_t scope, const char *name) {
    const char *pieces[SCOPES_MAX + 1] = {name};
    char text[NAME_MAX_BYTES];
    size_t count = 1;
    size_t at = 0;

    for (; scope != 0 && count <= SCOPES_MAX; scope = names->scopes[scope - 1].parent) {
        pieces[count++] = names->scopes[scope - 1].name;
    }
    if (count > 1 && pieces[1] == nameless_class && strcmp(name, "operator()") == 0) {
        pieces[1] = "{lambda}";
    }
    while (count > 0) {
        const char *piece = pieces[--count];
        size_t bytes = strlen(piece);
        if (bytes + 2 > sizeof text - at) {
            return NULL;
        }
        memcpy(text + at, piece, bytes);
        at += bytes;
        if (count > 0) {
            memcpy(text + at, "::", 2);
            at += 2;
        }
    }
    return ml_arena_text(&names->arena, text, at);
}

const char *ml_dwarf_names_find(struct ml_dwarf_names *names, Dwarf_Die *declaration) {
    Dwarf_Off entry = dwarf_dieoffset(declaration);
    const char *name = dwarf_diename(declaration);
    size_t low = ml_keys_below(ML_KEYS(names->named, names->named_count, entry), entry);

    if (!name) {
        return NULL;
    }
    if (low == names->named_count || names->named[low].entry != entry) {
        return NULL;
    }
    if (!names->named[low].text) {
        names->named[low].text = put_together(names, names->named[low].scope, name);
    }
    return names->named[low].text;
}
