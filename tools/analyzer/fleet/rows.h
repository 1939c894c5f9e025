/* A report as rows that can be added up: figures by role, process, heap, type and stack. Room:
 * tools. Context: one thread.
 *
 * One rule: equal things are one thing. Rows of processes of one name and role, and of stacks with
 * the same frames, are added up, so a report has as many rows as it has different answers. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_ROWS_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mojom_like_idl/contracts/fleet_report_mojom.h"
#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/string_table.h"

/* No stack, or the parent of an outermost frame. */
enum { ML_FLEET_NO_STACK = 0 };

/* Strings are numbers in `strings`. */
struct ml_fleet_frame {
    uint32_t function, module, build_id;
    uint64_t offset;
};

/* A stack is its innermost frame and the stack of its callers. */
struct ml_fleet_stack {
    uint32_t parent; /* number, from 1; ML_FLEET_NO_STACK: none */
    uint32_t frame;  /* index in `frames` */
    uint32_t depth;  /* frames that it has */
};

struct ml_fleet_row {
    uint32_t role, process, heap, type;
    uint32_t stack; /* number, from 1; ML_FLEET_NO_STACK */
    struct memlog_fleet_figures figures;
};

struct ml_fleet_rows {
    struct memlog_fleet_begin_request head; /* its strings are borrowed from `strings` */
    struct ml_string_table strings;
    struct ml_fleet_frame *frames;
    size_t frames_count, frames_capacity;
    struct ml_index frames_index;
    struct ml_fleet_stack *stacks; /* number N is at N - 1; parents come first */
    size_t stacks_count, stacks_capacity;
    struct ml_index stacks_index;
    struct ml_fleet_row *rows;
    size_t rows_count, rows_capacity;
    struct ml_index rows_index;
    bool is_full;   /* a limit of the contract was passed: what came then is not there */
    bool is_failed; /* memory ran out */
};

/* Rows are all zero at first. */
void ml_fleet_rows_fini(struct ml_fleet_rows *rows);

/* The string's number, cut to `most_bytes` at a whole character, without control characters. 0 is
 * the empty string, and what is returned without memory. */
uint32_t ml_fleet_string(struct ml_fleet_rows *rows, const char *text, size_t most_bytes);

/* The string as a message has it. Borrowed. */
struct ml_string ml_fleet_string_of(const struct ml_fleet_rows *rows, uint32_t string);

/* The number of the stack with that frame on top of `parent`. `parent` itself where a stack is as
 * deep as the contract permits, or where there is no room. */
uint32_t
ml_fleet_stack(struct ml_fleet_rows *rows, uint32_t parent, const struct ml_fleet_frame *frame);

/* Whether all numbers are those of something, and stacks end. For tests. */
bool ml_fleet_rows_check(const struct ml_fleet_rows *rows);

/* Add the figures to the row with the same five keys. */
void ml_fleet_row(struct ml_fleet_rows *rows, const struct ml_fleet_row *row);

#endif
