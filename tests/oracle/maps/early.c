/* maps_early: mappings made before main, by a library that the loader starts before memlog's own
 * constructor and by the program's constructor. Stands still as maps does. */
#include <unistd.h>

#include "tests/oracle/maps/claims.h"
#include "tests/oracle/maps/early.h"

int main(void);
MAPS_PATH __attribute__((constructor)) void constructed(void);

static char *mine;

MAPS_PATH void constructed(void) {
    mine = map_pages(31);
    touch(mine, 12 * MAPS_PAGE);
}

int main(void) {
    static const char ready[] = "ready\n";
    char line[8];
    claim_pages("map_pages<constructed", mine, 31, 12);
    claim_pages("map_early<library_begins", early_linked(), EARLY_PAGES, EARLY_TOUCHED);
    claims_write();
    if (write(STDOUT_FILENO, ready, sizeof(ready) - 1) != sizeof(ready) - 1) {
        claims_die("nobody listens");
    }
    (void)!read(STDIN_FILENO, line, sizeof(line));
    return 0;
}
