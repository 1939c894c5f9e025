/* So many events that no pipe holds them: flood.c PAIRS, so many blocks made and freed, 1,000 live
 * at a time. Waits for $ORACLE_DIR/go before and writes its truth, without peaks, as "end". Writes
 * "up" when it is ready. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"

enum { HELD = 1000, POLL_US = 2000 };

int main(int argc, char *argv[]);
LEDGER_PATH void pour(size_t pairs);

LEDGER_PATH void pour(size_t pairs) {
    static struct ledger_site site = {.chain = "pour<main"};
    static void *held[HELD];
    for (size_t i = 0; i < pairs + HELD; i++) {
        void **place = &held[i % HELD];
        if (*place != NULL) {
            free(*place);
            ledger_sub(&site, 24);
            *place = NULL;
        }
        if (i < pairs) {
            *place = malloc(24);
            ledger_add(&site, 24);
        }
    }
}

int main(int argc, char *argv[]) {
    const char *folder = getenv("ORACLE_DIR");
    char go[4096];
    if (argc < 2 || folder == NULL) {
        ledger_die("flood PAIRS, with ORACLE_DIR");
    }
    (void)snprintf(go, sizeof(go), "%s/go", folder);
    ledger_write("up", LEDGER_PARTIAL, argc, argv);
    while (access(go, F_OK) != 0) {
        (void)usleep(POLL_US);
    }
    pour(strtoul(argv[1], NULL, 10));
    ledger_write("end", LEDGER_EXACT, argc, argv);
    return 0;
}
