/* What bound_test opens: linked with lazy binding, so that a slot is bound by the first call. */
#include <stdlib.h>

void *ml_bound_take(size_t bytes);
void *ml_bound_take(size_t bytes) {
    return malloc(bytes);
}

int ml_bound_seven(void);
int ml_bound_seven(void) {
    return 7;
}

/* By its own procedure linkage: it exports what it calls. */
int ml_bound_seven_again(void);
int ml_bound_seven_again(void) {
    return ml_bound_seven();
}
