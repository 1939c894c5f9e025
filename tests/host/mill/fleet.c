#include "tests/host/mill/fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/mill/dice.h"

enum {
    DAY_MS = 86400000,
    START_DAY = 20706, /* Thursday, 2026-09-10 */
    LAG_SHARE = 3,     /* a build has reached all hosts within this part of its time */
    MOVED_BYTES = 64   /* by which each build moves the program's own functions */
};

static const double left_out = 0.15;    /* of the rows that are not among the largest */
static const size_t always = 3;         /* the largest ones */
static const double triggered_is = 1.5; /* times as large as one by chance */
static const double leak_times = 40;    /* the leak's most, in live bytes of the program */
static const uint64_t leak_block = 4096;

uint64_t fleet_guilty_build(const struct fleet_plan *plan) {
    return plan->builds - plan->builds / 4 - 1;
}

size_t fleet_leaking_program(const struct fleet *fleet) {
    return fleet->count - 1;
}

size_t fleet_changed_row(const struct fleet_program *program, enum fleet_change change) {
    static const size_t rows[] = {[FLEET_DOUBLED] = 30, [FLEET_GROWN] = 10, [FLEET_LEAKED] = 17};
    static const size_t parts[] = {[FLEET_DOUBLED] = 2, [FLEET_GROWN] = 8, [FLEET_LEAKED] = 4};
    const size_t part = program->rows_count / parts[change];
    return part < rows[change] ? part : rows[change];
}

static uint64_t draw(const struct fleet_plan *plan, uint64_t what, uint64_t number) {
    return dice_mix(dice_mix(plan->seed * 1000003 + what) + number);
}

enum { DRAW_DUMP = 1, DRAW_LEAK, DRAW_LAG, DRAW_BUILD, DRAW_HOST };

bool fleet_host_leaks(const struct fleet_plan *plan, uint64_t host) {
    uint64_t dice = draw(plan, DRAW_LEAK, host);
    return dice_share(&dice) < plan->leaks_on;
}

void fleet_host_name(uint64_t host, char out_name[FLEET_WORD_BYTES]) {
    (void)snprintf(out_name, FLEET_WORD_BYTES, "host-%05" PRIu64, host);
}

void fleet_build_id(size_t program, uint64_t build, char out_id[FLEET_WORD_BYTES]) {
    const uint64_t one = dice_mix(program * 100000 + build);
    (void)snprintf(
        out_id,
        FLEET_WORD_BYTES,
        "%016" PRIx64 "%016" PRIx64 "%08x",
        one,
        dice_mix(one),
        (unsigned)dice_mix(one + 1)
    );
}

/* Builds come one after the other, to each host with a lag of its own. */
static uint64_t build_at(const struct fleet_plan *plan, double part_of_time, uint64_t host) {
    if (plan->by_host) {
        return draw(plan, DRAW_BUILD, host) % plan->builds;
    }
    uint64_t dice = draw(plan, DRAW_LAG, host);
    const double build = part_of_time * (double)plan->builds - dice_share(&dice) / LAG_SHARE;
    return build > 0 ? (uint64_t)build : 0;
}

static double change_of(
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    const struct fleet_dump *dump,
    size_t row
) {
    if (!plan->changes || dump->program != 0 || dump->build < fleet_guilty_build(plan)) {
        return 1;
    }
    return row == fleet_changed_row(&fleet->programs[0], FLEET_DOUBLED) ? 2
           : row == fleet_changed_row(&fleet->programs[0], FLEET_GROWN) ? 1.12
                                                                        : 1;
}

/* By how much the leaking stack of this dump has grown, in bytes. */
static uint64_t leak_of(
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    const struct fleet_dump *dump,
    uint64_t *dice
) {
    const struct fleet_program *program = &fleet->programs[dump->program];
    double live = 0;
    if (dump->program != fleet_leaking_program(fleet) || dump->build < fleet_guilty_build(plan) ||
        !fleet_host_leaks(plan, dump->host)) {
        return 0;
    }
    for (size_t i = 0; i < program->rows_count; i++) {
        live += (double)program->rows[i].figures.live_bytes;
    }
    return (uint64_t)(dice_share(dice) * leak_times * live);
}

static void scale(struct memlog_fleet_figures *figures, double by) {
    uint64_t *const all[] = {
        &figures->live_bytes,
        &figures->live_blocks,
        &figures->peak_bytes,
        &figures->peak_blocks,
        &figures->total_bytes,
        &figures->total_blocks};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        *all[i] = (uint64_t)((double)*all[i] * by);
    }
}

static void add(struct memlog_fleet_figures *to, const struct memlog_fleet_figures *more) {
    to->live_bytes += more->live_bytes;
    to->live_blocks += more->live_blocks;
    to->peak_bytes += more->peak_bytes;
    to->peak_blocks += more->peak_blocks;
    to->total_bytes += more->total_bytes;
    to->total_blocks += more->total_blocks;
}

static void make_rows(
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    struct fleet_dump *dump,
    uint64_t *dice
) {
    const struct fleet_program *program = &fleet->programs[dump->program];
    const double size = dice_factor(dice, plan->dump_noise) * (dump->control ? 1 : triggered_is);
    const uint64_t leak = leak_of(fleet, plan, dump, dice);
    uint64_t host = draw(plan, DRAW_HOST, dump->host * FLEET_PROGRAMS_MAX + dump->program);
    for (size_t i = 0; i < program->rows_count; i++) {
        const double of_host = dice_factor(&host, plan->host_noise);
        const double factor = size * of_host * dice_factor(dice, plan->stack_noise);
        const bool is_leaking = leak > 0 && i == fleet_changed_row(program, FLEET_LEAKED);
        if (dice_share(dice) < left_out && i >= always && !is_leaking) {
            continue;
        }
        struct memlog_fleet_row *row = &dump->rows[dump->count++];
        *row = program->rows[i];
        scale(&row->figures, factor * change_of(fleet, plan, dump, i));
        if (is_leaking) {
            const uint64_t blocks = leak / leak_block;
            add(&row->figures,
                &(struct memlog_fleet_figures){leak, blocks, leak, blocks, leak, blocks});
        }
        add(&dump->sums, &row->figures);
    }
}

bool fleet_make(
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    uint64_t number,
    struct fleet_dump *dump
) {
    uint64_t dice = draw(plan, DRAW_DUMP, number);
    const double part_of_time = (double)number / (double)plan->dumps;
    dump->program = dice_next(&dice) % fleet->count;
    dump->host = dice_next(&dice) % plan->hosts;
    dump->build = build_at(plan, part_of_time, dump->host);
    dump->control = dice_share(&dice) < plan->control;
    dump->time_ms = (uint64_t)START_DAY * DAY_MS +
                    (uint64_t)(part_of_time * (double)plan->days * (double)DAY_MS);
    (void
    )snprintf(dump->guid, sizeof(dump->guid), "%016" PRIx64 "-%" PRIu64, dice_next(&dice), number);
    dump->count = 0;
    dump->sums = (struct memlog_fleet_figures){.live_bytes = 0};
    const size_t wanted = fleet->programs[dump->program].rows_count;
    if (dump->capacity < wanted) {
        struct memlog_fleet_row *rows = reallocarray(dump->rows, wanted, sizeof(*rows));
        if (rows == NULL) {
            return false;
        }
        dump->rows = rows;
        dump->capacity = wanted;
    }
    make_rows(fleet, plan, dump, &dice);
    return true;
}

void fleet_dump_fini(struct fleet_dump *dump) {
    free(dump->rows);
    *dump = (struct fleet_dump){.rows = NULL};
}

struct memlog_fleet_frame *
fleet_frames(const struct fleet_program *program, uint64_t build, const char *build_id) {
    struct memlog_fleet_frame *frames = calloc(program->frames_count + 1, sizeof(*frames));
    for (size_t i = 0; frames != NULL && i < program->frames_count; i++) {
        frames[i] = program->frames[i];
        if (frames[i].function.count_bytes == 0 &&
            strcmp(frames[i].module.data, program->module) == 0) {
            frames[i].build_id = ml_string_of(build_id);
            frames[i].offset += build * MOVED_BYTES;
        }
    }
    return frames;
}
