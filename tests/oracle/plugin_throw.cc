// A library whose functions throw through each other, and allocate on the way down and on the way
// up.
#include <stdexcept>
#include <stdlib.h>
#include <string.h>

#include "tests/oracle/ledger_names.h"
#include "tests/oracle/plugin.h"

namespace {

struct level {
    ledger_named_fn *note;
    int number; // calls of throw_deep on the stack
};

} // namespace

extern "C" {
PLUGIN_PATH void throw_deep(ledger_named_fn *note, int number, int deepest);
PLUGIN_PATH void clean_up(level *here);
}

// "innermost<throw_deep<...<try_once<main"
static void note_chain(const level &here, const char *innermost, void *block, size_t size) {
    char chain[256];
    strcpy(chain, innermost);
    for (int i = 0; i < here.number; i++) {
        strcat(chain, "throw_deep<");
    }
    strcat(chain, "try_once<main");
    here.note(chain, block, size);
}

// Runs in each frame while the exception passes by.
void clean_up(level *here) {
    note_chain(*here, "clean_up<", malloc(31), 31);
}

void throw_deep(ledger_named_fn *note, int number, int deepest) {
    level here __attribute__((cleanup(clean_up))) = {note, number};
    note_chain(here, "", malloc(100), 100);
    if (number == deepest) {
        throw std::runtime_error("out of the plugin");
    }
    throw_deep(note, number + 1, deepest);
}
