/* What bound_test opens: it calls nobody, and has a pointer to free among its data. */
#include <stdlib.h>

void (*ml_bound_release)(void *) = free;
