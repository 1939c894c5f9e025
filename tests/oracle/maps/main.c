/* maps CASE: makes mappings in one of the ways that programs have, writes what it knows of them as
 * claims, writes "ready", and stands still until a line comes on standard input. */
#include <unistd.h>

#include "tests/oracle/maps/claims.h"

int main(int argc, char *argv[]);

int main(int argc, char *argv[]) {
    static const char ready[] = "ready\n";
    char line[8];
    if (argc != 2) {
        return 2;
    }
    if (!anonymous_case(argv[1]) && !remaps_case(argv[1]) && !files_case(argv[1]) &&
        !sharing_case(argv[1]) && !advice_case(argv[1]) && !stacks_case(argv[1]) &&
        !odd_case(argv[1]) && !random_case(argv[1])) {
        claims_die("no such case");
    }
    claims_write();
    if (write(STDOUT_FILENO, ready, sizeof(ready) - 1) != sizeof(ready) - 1) {
        claims_die("nobody listens");
    }
    (void)!read(STDIN_FILENO, line, sizeof(line));
    return 0;
}
