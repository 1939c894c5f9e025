/* A collector's answer, read: its members, and how people read them. Room: host. Context: any.
 *
 * One rule: whatever is in it was sent by other machines. What is missing or of another kind reads
 * as nothing, and texts for people are printable. */
#ifndef MEMLOG_HOST_FLEET_ANSWER_H
#define MEMLOG_HOST_FLEET_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/error_message.h"

/* Room for any figure or time in words, and for a name that is shown. */
enum { ML_FLEET_CELL_BYTES = 64, ML_FLEET_NAME_BYTES = 1024 };

/* NULL: it is no answer of a collector, with an error message. Owner: json_decref. */
json_t *ml_fleet_answer_read(const char *bytes, size_t count, struct ml_error_message *error);

/* "" and 0 where there is none. A number is never negative. */
const char *ml_fleet_text(const json_t *object, const char *name);
double ml_fleet_number(const json_t *object, const char *name);
double ml_fleet_signed(const json_t *object, const char *name);
bool ml_fleet_is(const json_t *object, const char *name);
bool ml_fleet_is_not(const json_t *object, const char *name); /* it says "false" */

/* The elements of a member that is a list: none where it is no list. */
size_t ml_fleet_count(const json_t *object, const char *name);
const json_t *ml_fleet_element(const json_t *object, const char *name, size_t at);

/* The text in letters that a terminal may be shown; "(none)" for "". Returns `out`. */
const char *ml_fleet_name(const char *text, char out[ML_FLEET_NAME_BYTES]);
/* A build's id, or its beginning where it is long. */
const char *ml_fleet_build(const char *text, char out[ML_FLEET_CELL_BYTES]);

/* "20.0 MiB"; "27.5 %" of a share from 0 to 1; "12,345"; "2026-11-28 05:17" in UTC. */
const char *ml_fleet_bytes(double bytes, char out[ML_FLEET_CELL_BYTES]);
const char *ml_fleet_share(double share, char out[ML_FLEET_CELL_BYTES]);
const char *ml_fleet_many(double count, char out[ML_FLEET_CELL_BYTES]);
const char *ml_fleet_time(double ms, char out[ML_FLEET_CELL_BYTES]);

/* A member of bytes; "-" where nothing told it. */
const char *ml_fleet_figure(const json_t *object, const char *name, char out[ML_FLEET_CELL_BYTES]);

/* Millionths as percent: "0.6 %"; "-": it is not told. */
const char *ml_fleet_cost(const json_t *object, const char *name, char out[ML_FLEET_CELL_BYTES]);

/* The name of a frame: a function, or module+0xoffset. */
const char *ml_fleet_frame(const json_t *frame, char out[ML_FLEET_NAME_BYTES]);

/* Print the answer itself: the same JSON, in letters that a terminal may be shown. */
void ml_fleet_answer_put(FILE *out, const char *bytes, size_t count);

#endif
