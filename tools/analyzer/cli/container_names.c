/* What the host puts behind a dump of processes in other roots: the names of their code, by files
 * that nobody may find later. */
#include <stdio.h>

#include "base/watched.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/formats/symbol_packets.h"
#include "tools/analyzer/helpers/process_files.h"

/* As host/analysis/analyzer.h hands them over. */
enum { ROOTS_FD = 4, FIRST_SPACE_FD = ML_WATCHED_FD + 1 };

static int run(const struct ml_command *command, char *const *words) {
    struct ml_load load = {.is_of_processes = true, .takes_unrecorded = true};
    struct ml_loaded loaded;
    enum ml_status status = ML_OK;
    size_t places = 0;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &load, NULL, &exit_code)) {
        return exit_code;
    }
    ml_process_files_roots(ROOTS_FD, FIRST_SPACE_FD);
    exit_code = ml_command_load(command, &load, &loaded);
    if (exit_code == ML_EXIT_OK) {
        status = ml_symbol_packets_write(&loaded.stacks, stdout, &places);
        ml_symbol_packets_write_lacks(&loaded.stacks, stdout);
        exit_code = ml_command_written(command, NULL, status);
    }
    ml_loaded_fini(&loaded);
    return exit_code == ML_EXIT_OK ? ml_command_finish(command) : exit_code;
}

const struct ml_command ml_command_container_names = {
    .table =
        {.program = "memlog-analyzer",
         .name = "container-names",
         .summary = "names of code that only its processes have",
         .usage = "DUMP",
         .about = "The names that are found in files of processes alone, or why there are none, as "
                  "packets for the end of the dump, on stdout. memlog starts it where processes "
                  "have another root, which it gets as a descriptor, or code in deleted files.",
         ML_OPERANDS_DUMPS(struct ml_load, path, 1),
         .example = "memlog-analyzer container-names memlog.sqlite3.1234/0001.exit.pftrace"},
    .run = run,
};
