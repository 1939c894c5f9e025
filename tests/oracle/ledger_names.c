#include "tests/oracle/ledger_names.h"

#include <string.h>

#include "tests/oracle/ledger.h"

enum { NAMES_MAX = 64, CHAIN_MAX = 256 };

static struct ledger_site sites[NAMES_MAX];
static char chains[NAMES_MAX][CHAIN_MAX];

void *ledger_named(const char *chain, void *address, size_t size_bytes) {
    size_t i = 0;
    while (i < NAMES_MAX && sites[i].chain && strcmp(chains[i], chain) != 0) {
        i++;
    }
    if (i == NAMES_MAX || strlen(chain) >= CHAIN_MAX) {
        ledger_die("ledger: too many names");
    }
    strcpy(chains[i], chain);
    sites[i].chain = chains[i];
    return ledger_alloc(&sites[i], address, size_bytes);
}

void ledger_named_free(void *address) {
    ledger_free(address);
}

void ledger_named_module(const char *name) {
    ledger_module(name);
}

void ledger_named_write(const char *label, int argc, char *const argv[]) {
    ledger_write(label, 0, argc, argv);
}
