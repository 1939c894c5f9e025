/* A library with the hash table of System V alone, and an indirect function. symbols_test.c looks
 * for what it has. */

__attribute__((visibility("default"))) int ml_symbols_plugin_plain(void);
__attribute__((visibility("default"))) int ml_symbols_plugin_indirect(void);

int ml_symbols_plugin_plain(void) {
    return 7;
}

static int chosen(void) {
    return 8;
}

typedef int plugin_fn(void);

static __attribute__((used)) plugin_fn *choose(void) {
    return chosen;
}

int ml_symbols_plugin_indirect(void) __attribute__((ifunc("choose")));
