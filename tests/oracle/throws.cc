// Exceptions thrown out of a plugin loaded by dlopen: frames vanish without returning, and
// allocations before, during and after must keep their own. Writes "end".
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <stdlib.h>
#include <unistd.h>

#include "tests/oracle/ledger_names.h"
#include "tests/oracle/plugin.h"

extern "C" {
PLUGIN_PATH void after_catch(void);
PLUGIN_PATH void try_once(void *symbol, int depth);
}

void after_catch(void) {
    ledger_named("after_catch<try_once<main", malloc(77), 77);
}

void try_once(void *symbol, int depth) {
    void (*throw_deep)(ledger_named_fn *, int, int);
    memcpy(&throw_deep, &symbol, sizeof(throw_deep));
    try {
        throw_deep(ledger_named, 1, 1 + depth);
    } catch (const std::runtime_error &error) {
        if (strcmp(error.what(), "out of the plugin") == 0) {
            after_catch();
        }
    }
}

int main(int argc, char *argv[]) {
    char path[640];
    ssize_t count = readlink("/proc/self/exe", path, 512);
    if (count <= 0) {
        return 98;
    }
    path[count] = '\0';
    strcpy(strrchr(path, '/') + 1, "plugin_throw.so");
    ledger_named_module("plugin_throw.so");
    for (int round = 0; round < 50; round++) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library) {
            return 97;
        }
        try_once(dlsym(library, "throw_deep"), round % 7);
        if (round % 5 == 0) {
            dlclose(library);
        }
    }
    ledger_named_write("end", argc, argv);
    return 0;
}
