/* A fleet that does not exist: programs by templates, and dumps of them on many machines. Room:
 * tests. Context: any; pure but for reading templates.
 *
 * One rule: a dump is a function of plan and number alone. So whoever made it knows what it holds,
 * and any part of a fleet can be made anew.
 *
 * Shape of a template, a text file a program, fields with a tab between them, all lists numbered
 * from 1:
 *   program NAME MODULE                       MODULE: the executable's; it changes with each build
 *   frame FUNCTION MODULE BUILD_ID OFFSET     as in mojom_like_idl/contracts/fleet_report.mojom
 *   stack PARENT FRAME
 *   row STACK LIVE BLOCKS PEAK BLOCKS TOTAL BLOCKS */
#ifndef MEMLOG_TESTS_HOST_MILL_FLEET_H
#define MEMLOG_TESTS_HOST_MILL_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mojom_like_idl/contracts/fleet_report_mojom.h"

struct fleet_program {
    char *name, *module;
    struct memlog_fleet_frame *frames; /* their strings are the program's */
    struct memlog_fleet_stack *stacks;
    struct memlog_fleet_row *rows; /* those with most live bytes in front */
    size_t frames_count, stacks_count, rows_count;
};

enum { FLEET_PROGRAMS_MAX = 64, FLEET_WORD_BYTES = 48 };

struct fleet {
    struct fleet_program programs[FLEET_PROGRAMS_MAX];
    size_t count;
};

/* The files NAME.template of the folder, by name. False: errno, or a file that is none (EINVAL). */
bool fleet_read(struct fleet *fleet, const char *folder);

/* Programs that nobody wrote, for tests that have no time to record fourteen. */
bool fleet_pretend(struct fleet *fleet, uint64_t seed, size_t programs, size_t stacks);

void fleet_fini(struct fleet *fleet);

struct fleet_plan {
    uint64_t seed, dumps, hosts, builds, days;
    double control;                             /* share of the dumps that come by chance */
    double dump_noise, stack_noise, host_noise; /* standard deviations of logarithms */
    double leaks_on;                            /* share of the hosts; 0: nothing leaks */
    bool changes;                               /* one stack doubles, another one grows by 12 % */
    bool by_host; /* a host has one build for ever; else builds come one after the other */
};

/* What is planted begins with this build. */
uint64_t fleet_guilty_build(const struct fleet_plan *plan);

/* Programs of the leak and of the changed stacks, and which rows of them those are. */
size_t fleet_leaking_program(const struct fleet *fleet);
enum fleet_change { FLEET_DOUBLED, FLEET_GROWN, FLEET_LEAKED };
size_t fleet_changed_row(const struct fleet_program *program, enum fleet_change change);

bool fleet_host_leaks(const struct fleet_plan *plan, uint64_t host);
void fleet_host_name(uint64_t host, char out_name[FLEET_WORD_BYTES]);
void fleet_build_id(size_t program, uint64_t build, char out_id[FLEET_WORD_BYTES]);

struct fleet_dump {
    size_t program;
    uint64_t build, host, time_ms;
    bool control;
    char guid[FLEET_WORD_BYTES];
    struct memlog_fleet_row *rows;
    size_t count, capacity;
    struct memlog_fleet_figures sums;
};

/* Dump `number` of the plan, in place of what was in `dump`, all zero at first. False: no memory.
 * Owner: fleet_dump_fini. */
bool fleet_make(
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    uint64_t number,
    struct fleet_dump *dump
);
void fleet_dump_fini(struct fleet_dump *dump);

/* Frames of that build of a program: its own module's have moved. Owner: free; the strings are the
 * program's and `build_id`. NULL: no memory. */
struct memlog_fleet_frame *
fleet_frames(const struct fleet_program *program, uint64_t build, const char *build_id);

#endif
