/* runner: no second chance */
/* Feed a fuzzer its seeds and mutants of them, always the same ones. Room: tests.
 *
 * They guard what was found; tools/dev/fuzz looks for more. Without a sanitizer a tenth of them is
 * fed: there only a crash is seen, which the sanitizer sees too.
 *
 * A seed is a line `name: hexadecimal` or `name: "text"`; a line that begins with a blank goes on
 * with the one before; '#' begins a comment line, and `# mutants: N` says how many of each seed,
 * where one costs more than most. The program NAME_fuzz takes the seeds in
 * tests/fuzz/seeds/NAME.txt, from the root of the tree. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/fuzz/fuzz.h"

enum {
    SEEDS_MAX = 256,
    SEED_BYTES_MAX = 8192,
    MUTANTS_DEFAULT = 10000, /* of each seed: seconds for all under sanitizers */
#ifdef __SANITIZE_ADDRESS__
    FED_OF_TEN = 10,
#else
    FED_OF_TEN = 1,
#endif
};

struct seed {
    char name[64];
    uint8_t bytes[SEED_BYTES_MAX];
    size_t count_bytes;
};

static struct seed seeds[SEEDS_MAX];
static int seed_count;
static int mutants_per_seed = MUTANTS_DEFAULT;
static char seeds_path[256];

static void add_byte(struct seed *seed, unsigned byte) {
    ck_assert_msg(seed->count_bytes < SEED_BYTES_MAX, "seed %s is too long", seed->name);
    seed->bytes[seed->count_bytes++] = (uint8_t)byte;
}

static void add_text(struct seed *seed, const char *text) {
    for (const char *at = text + 1; *at != 0 && *at != '"'; at++) {
        if (at[0] == '\\' && at[1] == 'n') {
            add_byte(seed, '\n');
            at++;
        } else if (at[0] == '\\' && at[1] == '"') {
            add_byte(seed, '"');
            at++;
        } else {
            add_byte(seed, (unsigned char)*at);
        }
    }
}

static void add_bytes(struct seed *seed, const char *text) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    if (*text == '"') {
        add_text(seed, text);
        return;
    }
    char *end = NULL;
    while (*text != 0) {
        const unsigned long byte = strtoul(text, &end, 16);
        ck_assert_msg(end != text && byte < 256, "seed %s: '%s' is no byte", seed->name, text);
        add_byte(seed, (unsigned)byte);
        text = end + strspn(end, " \n");
    }
}

static void read_seeds(void) {
    FILE *in = fopen(seeds_path, "r");
    ck_assert_msg(in != NULL, "no %s: run in the root of the tree", seeds_path);
    static char line[4 * SEED_BYTES_MAX];
    struct seed *seed = NULL;
    while (fgets(line, sizeof(line), in) != NULL) {
        (void)sscanf(line, "# mutants: %d", &mutants_per_seed);
        if (line[0] == '#' || line[0] == '\n') {
            continue;
        }
        if (line[0] == ' ') {
            ck_assert_ptr_nonnull(seed);
            add_bytes(seed, line);
            continue;
        }
        char *colon = strchr(line, ':');
        ck_assert_msg(colon != NULL && seed_count < SEEDS_MAX, "no name in: %s", line);
        seed = &seeds[seed_count++];
        *colon = 0;
        (void)snprintf(seed->name, sizeof(seed->name), "%.60s", line);
        add_bytes(seed, colon + 1);
    }
    (void)fclose(in);
}

/* xorshift64 */
static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void mutate_once(uint64_t *state, uint8_t *bytes, size_t *count_bytes) {
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0x90, 0xc0, 0xff};
    const size_t at = *count_bytes == 0 ? 0 : next(state) % *count_bytes;
    switch (next(state) % 6) {
    case 0:
        bytes[at] ^= (uint8_t)(1U << next(state) % 8);
        break;
    case 1:
        bytes[at] = telling[next(state) % sizeof(telling)];
        break;
    case 2:
        bytes[at] = (uint8_t)next(state);
        break;
    case 3: /* cut the end off */
        *count_bytes = at;
        break;
    case 4: /* take a byte out */
        if (*count_bytes > 0) {
            memmove(bytes + at, bytes + at + 1, *count_bytes - at - 1);
            (*count_bytes)--;
        }
        break;
    default: /* say something twice */
        if (*count_bytes > 0 && *count_bytes < SEED_BYTES_MAX) {
            memmove(bytes + at + 1, bytes + at, *count_bytes - at);
            (*count_bytes)++;
        }
        break;
    }
}

/* In memory of exactly its size, so that a sanitizer sees a step behind it. */
static void feed(const uint8_t *bytes, size_t count_bytes) {
    uint8_t *copy = malloc(count_bytes == 0 ? 1 : count_bytes);
    memcpy(copy, bytes, count_bytes);
    (void)LLVMFuzzerTestOneInput(copy, count_bytes);
    free(copy);
}

START_TEST(every_seed_is_survived) {
    ck_assert_int_gt(seed_count, 0);
    for (int i = 0; i < seed_count; i++) {
        feed(seeds[i].bytes, seeds[i].count_bytes);
    }
}
END_TEST

START_TEST(mutants_of_every_seed_are_survived) {
    static uint8_t bytes[SEED_BYTES_MAX];
    uint64_t state = 1;
    for (int i = 0; i < seed_count; i++) {
        for (int k = 0; k < mutants_per_seed * FED_OF_TEN / 10; k++) {
            size_t count_bytes = seeds[i].count_bytes;
            memcpy(bytes, seeds[i].bytes, count_bytes);
            for (uint64_t n = 1 + next(&state) % 4; n > 0; n--) {
                mutate_once(&state, bytes, &count_bytes);
            }
            feed(bytes, count_bytes);
        }
    }
}
END_TEST

int main(int argc, char **argv) {
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash == NULL ? argv[0] : slash + 1;
    const int name_length = (int)strlen(name) - (int)strlen("_fuzz");
    (void)snprintf(seeds_path, sizeof(seeds_path), "tests/fuzz/seeds/%.*s.txt", name_length, name);
    Suite *suite = suite_create("fuzz");
    TCase *tcase = tcase_create("fuzz");
    tcase_set_timeout(tcase, 200); /* far more than any takes */
    tcase_add_unchecked_fixture(tcase, read_seeds, NULL);
    tcase_add_test(tcase, every_seed_is_survived);
    tcase_add_test(tcase, mutants_of_every_seed_are_survived);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
