/* A made-up dump, read and symbolized, for tests of the formats. Room: tests.
 *
 * One rule: every test has a new one: three processes of a program whose places are known. */
#ifndef MEMLOG_TESTS_DUMP_FORMATS_FIXTURE_H
#define MEMLOG_TESTS_DUMP_FORMATS_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include <check.h>

#include "service/snapshot/snapshot.h"
#include "tests/tools/sample_places.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"
#include "tools/analyzer/symbols/symbolizer.h"

extern struct sample_places places;
extern struct ml_snapshot *snapshot; /* what was dumped */
extern struct ml_profile profile;
extern struct ml_stacks stacks;
extern struct ml_symbolizer *symbolizer;

/* All of main: run the tests, each with a dump of its own. Returns what main returns. */
int formats_run(const char *suite, const TTest *const *tests, size_t count);

/* This process alone from here on. */
void formats_select(uint32_t pid);

/* What all stacks of a list hold. */
struct ml_profile_totals formats_sum(const struct ml_stack_list *list);

/* The stacks' sums are the profile's figures, of the tree and of each process. */
void formats_check_sums(void);

#endif
