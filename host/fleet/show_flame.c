/* The tree of all stacks: folded for flame graph tools, or for people from the top down. Room:
 * host. Context: any.
 *
 * One rule: callers come first in an answer; one that does not keep to that is not shown. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/fleet/ask.h"
#include "host/fleet/table.h"
#include "host/process/log.h"

enum { LINES = 60, LINE_BYTES = 4096, INDENT_MOST = 60, FOLDED_BYTES = 1 << 20 };

/* Smaller parts of the whole are folded into a count. */
static const double least_share = 0.005;

struct node {
    const char *name;
    size_t parent; /* 0: the root */
    double own, whole;
    size_t first, count; /* its children: places in `order` */
};

struct tree {
    struct node *nodes; /* [0] is the root */
    size_t count;
    size_t *order; /* children of each node together, the largest first */
};

static void tree_fini(struct tree *tree) {
    free(tree->nodes);
    free(tree->order);
}

static int by_parent_and_size(const void *a, const void *b, void *nodes) {
    const struct node *one = &((const struct node *)nodes)[*(const size_t *)a];
    const struct node *other = &((const struct node *)nodes)[*(const size_t *)b];
    if (one->parent != other->parent) {
        return one->parent < other->parent ? -1 : 1;
    }
    if (one->whole != other->whole) {
        return one->whole > other->whole ? -1 : 1;
    }
    return one < other ? -1 : one > other;
}

static void order_children(struct tree *tree) {
    for (size_t i = 1; i < tree->count; i++) {
        tree->order[i - 1] = i;
    }
    qsort_r(tree->order, tree->count - 1, sizeof(*tree->order), by_parent_and_size, tree->nodes);
    for (size_t i = 0; i + 1 < tree->count; i++) {
        struct node *parent = &tree->nodes[tree->nodes[tree->order[i]].parent];
        if (parent->count == 0) {
            parent->first = i;
        }
        parent->count++;
    }
}

/* False: no memory, or the answer is none of a collector's. */
static bool tree_read(const json_t *answer, const char *figure, struct tree *out_tree) {
    const size_t count = ml_fleet_count(answer, "nodes");
    *out_tree = (struct tree
    ){.nodes = calloc(count + 1, sizeof(struct node)),
      .count = count + 1,
      .order = calloc(count + 1, sizeof(size_t))};
    if (out_tree->nodes == NULL || out_tree->order == NULL) {
        return false;
    }
    for (size_t i = 1; i <= count; i++) {
        const json_t *one = ml_fleet_element(answer, "nodes", i - 1);
        struct node *node = &out_tree->nodes[i];
        const double parent = ml_fleet_number(one, "parent");
        if (parent >= (double)i) {
            return false;
        }
        *node = (struct node
        ){.name = ml_fleet_text(one, "name"),
          .parent = (size_t)parent,
          .own = ml_fleet_number(one, figure)};
        node->whole = node->own;
    }
    for (size_t i = count; i > 0; i--) {
        out_tree->nodes[out_tree->nodes[i].parent].whole += out_tree->nodes[i].whole;
    }
    order_children(out_tree);
    return true;
}

/* ---- folded */

/* "main;serve;leak 123", from the outermost on. The path is written from its end. */
static void put_folded(const struct tree *tree, size_t at, char *path, FILE *out) {
    const double own = tree->nodes[at].own;
    size_t begin = FOLDED_BYTES - 1;
    path[begin] = '\0';
    for (size_t i = at; i != 0; i = tree->nodes[i].parent) {
        char name[ML_FLEET_NAME_BYTES];
        (void)ml_fleet_name(tree->nodes[i].name, name);
        const size_t count = strlen(name);
        if (count + 1 > begin) {
            break; /* deeper than any stack that is kept */
        }
        for (char *letter = name; *letter != '\0'; letter++) {
            *letter = *letter == ';' ? ':' : *letter;
        }
        begin -= count;
        memcpy(path + begin, name, count);
        if (tree->nodes[i].parent != 0) {
            path[--begin] = ';';
        }
    }
    (void)fprintf(out, "%s %" PRIu64 "\n", path + begin, (uint64_t)llround(fmin(own, 0x1p62)));
}

static void put_all_folded(const struct tree *tree, FILE *out) {
    char *path = malloc(FOLDED_BYTES);
    for (size_t i = 1; path != NULL && i < tree->count; i++) {
        if (tree->nodes[i].own >= 0.5) {
            put_folded(tree, i, path, out);
        }
    }
    free(path);
}

/* ---- for people */

struct printing {
    const struct tree *tree;
    double all, dumps;
    size_t lines, lines_most, width;
    FILE *out;
};

static void put_node(struct printing *printing, const struct node *node, unsigned indent) {
    char line[LINE_BYTES];
    char share[ML_FLEET_CELL_BYTES];
    char bytes[ML_FLEET_CELL_BYTES];
    char name[ML_FLEET_NAME_BYTES];
    (void)snprintf(
        line,
        sizeof(line),
        "%8s  %10s  %*s%s",
        ml_fleet_share(node->whole / printing->all, share),
        ml_fleet_bytes(node->whole / printing->dumps, bytes),
        (int)(indent < INDENT_MOST ? indent : INDENT_MOST),
        "",
        ml_fleet_name(node->name, name)
    );
    ml_fleet_put_line(printing->out, line, printing->width);
    printing->lines++;
}

static size_t shown_children(const struct printing *printing, const struct node *node) {
    size_t count = 0;
    while (count < node->count &&
           printing->tree->nodes[printing->tree->order[node->first + count]].whole >=
               least_share * printing->all) {
        count++;
    }
    return count;
}

/* Children from the top down; those of a node with one child stand below it without an indent. */
static void put_tree(struct printing *printing) {
    struct place {
        size_t node, next;
        unsigned indent;
    };
    const struct tree *tree = printing->tree;
    struct place *places = calloc(tree->count + 1, sizeof(*places));
    size_t depth = 1;
    while (places != NULL && depth > 0) {
        struct place *place = &places[depth - 1];
        const struct node *node = &tree->nodes[place->node];
        const size_t children = shown_children(printing, node);
        if (place->next == children) {
            depth--;
            continue;
        }
        if (printing->lines == printing->lines_most) {
            (void)fprintf(
                printing->out,
                "... more than %zu lines: --limit=N shows more\n",
                printing->lines_most
            );
            break;
        }
        const size_t child = tree->order[node->first + place->next++];
        const unsigned indent = place->indent + (children > 1 || place->node == 0 ? 2 : 0);
        put_node(printing, &tree->nodes[child], indent);
        places[depth++] = (struct place){.node = child, .indent = indent};
    }
    free(places);
}

void ml_fleet_show_flame(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    const struct ml_fleet_options *options = asked->options;
    struct tree tree;
    if (!tree_read(answer, ml_fleet_figures[options->metric], &tree)) {
        ml_say_error("the tree cannot be read: what answers is no collector, or memory ran out");
    } else if (options->folded) {
        put_all_folded(&tree, out);
    } else {
        struct printing printing = {
            .tree = &tree,
            .all = fmax(1, tree.nodes[0].whole),
            .dumps = fmax(1, ml_fleet_dumps_with(answer, options->metric)),
            .lines_most = options->limit > 0 ? options->limit : LINES,
            .width = ml_fleet_width(),
            .out = out,
        };
        (void)fprintf(
            out,
            "   SHARE        MEAN    FUNCTION (%s; outermost first, from %.1f %% on)\n",
            ml_fleet_metrics[options->metric],
            100 * least_share
        );
        ml_fleet_put_without_metric(out, answer, options->metric);
        put_tree(&printing);
        ml_fleet_put_next(asked, "flame --folded", options->program, out);
    }
    tree_fini(&tree);
}
