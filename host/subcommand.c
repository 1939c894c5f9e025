#include "host/subcommand.h"

#include <string.h>

#include "base/suggest.h"

static const char run_help[] =
    "Usage: memlog run [OPTIONS] -- PROGRAM [ARGS...]\n"
    "\n"
    "Runs PROGRAM with every process that it starts under memlog and writes a dump of who holds\n"
    "which memory when the last of them has ended. stdin, stdout and the exit code are the\n"
    "program's; memlog speaks on stderr.\n"
    "\n"
    "  --memlog=MODE        which processes: all (default), none, manual, minimal, browser, gpu,\n"
    "                       all-renderers, renderer-sampling, utility-sampling, all-utilities,\n"
    "                       utility-and-browser\n"
    "  --memlog-role=ROLE=REGEX\n"
    "                       command lines that match REGEX are a browser, renderer, gpu, utility\n"
    "                       or other; built in: --type=ROLE, and the first process is the browser\n"
    "  --only=REGEX, --never=REGEX\n"
    "                       profile only, or never, command lines that match\n"
    "  --never-list=FILE    nor what a line of FILE matches, whoever asks; what /etc/memlog/never\n"
    "                       lists is never recorded on this machine\n"
    "  --memlog-stack-mode=native|native-with-thread-names\n"
    "  --memlog-sampling, --memlog-sampling-rate=BYTES\n"
    "                       record one allocation in so many bytes on average (K, M, G suffixes;\n"
    "                       4K without a rate) and those that are larger; figures are estimates\n"
    "                       with their standard errors then. 1 (default): every allocation\n"
    "  --memlog-overrun=block|sample\n"
    "                       what a full pipe does: wait, at most 1 s, then drop and count; or\n"
    "                       record a sample, the smaller the fuller it is, until it has room "
    "again\n"
    "  --memlog-buffer-bytes=N\n"
    "                       buffer of each thread (K and M suffixes), 4K (default; 64K with\n"
    "                       --memlog-overrun=sample) to 1M: takes what a full pipe does not;\n"
    "                       memory of the program once it is used\n"
    "  --keep-processes=N   profiles of ended processes that stay apart, 1000 by default; beyond "
    "it\n"
    "                       the shortest-lived are folded by program, with their sums\n"
    "  --service-memory=BYTES\n"
    "                       what memlog-service's tables may take, by default a quarter of the\n"
    "                       machine's or control group's memory; before it is at an end the "
    "largest\n"
    "                       process is sampled, then only its totals are kept\n"
    "  --client-memory=BYTES\n"
    "                       what one process may hold of that, by default nine tenths; beyond it\n"
    "                       only its totals are kept, then it is recorded no more; the others\n"
    "                       lose nothing\n"
    "  --memlog-keep-small-allocations\n"
    "                       uploads unpruned too; dumps are always complete\n"
    "  --sandbox=auto|strict|none\n"
    "                       auto (default): all that the kernel permits; strict: all or nothing\n"
    "  --unwind-check=N     every Nth stack is also walked by libunwind, differences are reported\n"
    "  --end-with-root      dump when the first process ends, do not wait for the others\n"
    "  -o, --output=DIR     where dumps go; default memlog.PROGRAM.PID in the current folder\n"
    "  --page[=[ADDRESS:]PORT|=unix:PATH], --no-page\n"
    "                       where the live page is: 127.0.0.1 and a free port (default); its\n"
    "                       address with a token is printed on stderr\n"
    "  --page-remote        let ADDRESS be one that other machines reach\n"
    "  --dump-interval=SECONDS, --dump-signal=SIG\n"
    "                       more dumps: every so often; when memlog gets the signal\n"
    "  --dump-at-peak[=STEP]\n"
    "                       and whenever the tree has come to hold STEP more than at the last of\n"
    "                       these dumps: a size, or a share such as 25% (default; 1M at least)\n"
    "  --threshold=ROLE=SIZE, --trigger-interval=SECONDS\n"
    "                       a dump when a process has more private memory than its role may\n"
    "                       (browser and gpu 400M, renderer 500M, utility 250M; off: none), and\n"
    "                       again at 500M more; looked at every 900 s\n"
    "  --triggers=FILE      more that makes a dump, in JSON: growth, live heap, a stack's budget,\n"
    "                       limits, pressure, ...: docs/triggers-and-uploads.md lists the keys.\n"
    "                       Who is killed by SIGKILL is dumped in any case. DIR/triggers.log "
    "tells\n"
    "                       every decision\n"
    "  --upload=URL         send the dumps that triggers and 'memlog upload' make, pruned, to\n"
    "                       https://..., s3://BUCKET/PREFIX, s3+https://ENDPOINT/BUCKET/PREFIX,\n"
    "                       pyroscope+https://..., pyroscope-ingest+https://..., "
    "otlp+https://...,\n"
    "                       or into a folder. Nothing leaves without it\n"
    "  --upload-max-bytes=N, --upload-names=plain|none|all\n"
    "                       how large it may be (10000000); which names of threads may leave\n"
    "  --upload-token-file=FILE, --upload-ca=FILE, --upload-spool=DIR, --upload-wait=SECONDS\n"
    "                       a bearer token; certificates to trust; where reports wait, and how\n"
    "                       long the run's end waits for them (10)\n"
    "  -q, --quiet          say nothing\n"
    "  -h, --help\n"
    "\n"
    "Exit code: the program's, 128+N if signal N killed it; 125 memlog failed, 126 the program\n"
    "cannot be run, 127 there is no such program, 2 a wrong command line.\n"
    "\n"
    "Example:\n"
    "  memlog run --memlog=all -- sqlite3 test.db 'select count(*) from t'\n";

static const char ps_help[] =
    "Usage: memlog ps [--json] [--host=PATH]\n"
    "\n"
    "Lists the processes of a running memlog: the newest of this user, or the one whose command\n"
    "socket is PATH.\n"
    "\n"
    "Example:\n"
    "  memlog ps --json\n";

static const char dump_help[] =
    "Usage: memlog dump [--role=ROLE] [--reason=TEXT] [--host=PATH] [PID...]\n"
    "\n"
    "Takes a dump of a running memlog, of the given processes, of those of a role (browser,\n"
    "renderer, gpu, utility, other) or of all, and prints its path. The reason stands in the\n"
    "dump, where 'memlog report' shows it, and in the page's list: up to 256 bytes of one line.\n"
    "\n"
    "Example:\n"
    "  memlog dump --role=renderer --reason='after the tenth tab'\n";

static const char start_help[] =
    "Usage: memlog start [--json] [--host=PATH] [--memlog-sampling-rate=BYTES]\n"
    "                    [--memlog-stack-mode=MODE] [--name=REGEX] [PID...]\n"
    "\n"
    "Records processes of a running memlog from now on, each in a new, empty profile. What was\n"
    "recorded of them before is dropped. With --memlog=manual nothing is recorded until then.\n"
    "--name=REGEX is about programs: everything whose name or command line matches, what runs\n"
    "now and what starts later, until 'memlog stop' with the same --name.\n"
    "\n"
    "Example:\n"
    "  memlog start --name='--type=renderer'\n";

static const char stop_help[] =
    "Usage: memlog stop [--json] [--host=PATH] [--name=REGEX] [PID...]\n"
    "\n"
    "Records processes of a running memlog no more. Their profiles "
    "stay as they are at this moment,\n"
    "in every dump, until they are started again.\n"
    "\n"
    "Example:\n"
    "  memlog stop 4711\n";

static const char rate_help[] =
    "Usage: memlog rate [--json] [--host=PATH] --memlog-sampling-rate=BYTES PID...\n"
    "\n"
    "Records processes of a running memlog at another sampling rate from now on: one allocation\n"
    "in so many bytes on average, or all with 1. Their profiles go on, and what was recorded\n"
    "counts as it was: figures stay unbiased over every change, and say how exact they are.\n"
    "\n"
    "Example:\n"
    "  memlog rate --memlog-sampling-rate=512K 4711\n";

static const char env_help[] =
    "Usage: memlog env [--json|--plain] [--host=PATH]\n"
    "\n"
    "Prints the variables by which a program that is started elsewhere (by a service manager, a\n"
    "test runner, another shell) joins a running memlog: the newest of this user, or the one\n"
    "whose command socket is PATH. It is profiled, with all that it starts, while that memlog\n"
    "runs, and runs on by itself behind it.\n"
    "\n"
    "  --plain  KEY=VALUE lines, as for systemd's EnvironmentFile; without, for a shell's eval\n"
    "  --json   one object\n"
    "\n"
    "Example:\n"
    "  eval \"$(memlog env)\" && python3 server.py\n";

static const char doctor_help[] =
    "Usage: memlog doctor [--json] [PROGRAM [ARGS...]]\n"
    "       memlog doctor [--json] --pid=PID\n"
    "       memlog doctor [--json] --triggers=FILE\n"
    "\n"
    "Finds out why nothing is recorded: whether memlog's parts are there, what this system "
    "permits,\n"
    "whether a program can be profiled (it is not run, but for its first instruction), or why a\n"
    "process that runs is not; or what is wrong in a triggers file, and what of it this system\n"
    "cannot tell. Ends with 1 if something stands in the way.\n"
    "\n"
    "Example:\n"
    "  memlog doctor python3\n";

static const char upload_help[] =
    "Usage: memlog upload [--wait] [--host=PATH]\n"
    "       memlog upload --dry-run [--form=FORM] [-o FILE] DUMP\n"
    "\n"
    "Takes a dump of a running memlog and sends it, pruned, to where its --upload says; with "
    "--wait\n"
    "it ends when that has arrived. --dry-run shows byte for byte what would leave of a dump, and "
    "on\n"
    "stderr what was cut; nothing is sent ('memlog upload --dry-run --help' has its options).\n"
    "\n"
    "Example:\n"
    "  memlog upload --dry-run memlog.prog.4711/0001.exit.pftrace | less\n";

static const char page_help[] =
    "Usage: memlog page [--page=[ADDRESS:]PORT|--page=unix:PATH] [--page-remote] DIR\n"
    "\n"
    "Serves the page over the dumps of an ended run, which lie in DIR, and prints its address "
    "with\n"
    "the token: processes, flame graphs, functions, what changed between two dumps. ^C ends it.\n"
    "\n"
    "Example:\n"
    "  memlog page memlog.sqlite3.1234\n";

static const char help_help[] = "Usage: memlog help [COMMAND]\n"
                                "\n"
                                "Example:\n"
                                "  memlog help run\n";

static const struct ml_subcommand subcommands[] = {
    {"run", ML_SUBCOMMAND_RUN, "run a program and profile all its processes", run_help},
    {"ps", ML_SUBCOMMAND_HOST, "list the processes of a running memlog", ps_help},
    {"dump", ML_SUBCOMMAND_HOST, "take a dump of a running memlog now", dump_help},
    {"start", ML_SUBCOMMAND_HOST, "start recording a process", start_help},
    {"stop", ML_SUBCOMMAND_HOST, "stop recording a process", stop_help},
    {"rate", ML_SUBCOMMAND_HOST, "record a process at another sampling rate", rate_help},
    {"report", ML_SUBCOMMAND_ANALYZER, "who holds which memory, as text or JSON", NULL},
    {"convert", ML_SUBCOMMAND_ANALYZER, "turn a dump into another format", NULL},
    {"diff", ML_SUBCOMMAND_ANALYZER, "what changed between two dumps", NULL},
    {"flamegraph", ML_SUBCOMMAND_ANALYZER, "one HTML page with a flame graph", NULL},
    {"symbolize", ML_SUBCOMMAND_ANALYZER, "add function names to a dump", NULL},
    {"timeline", ML_SUBCOMMAND_ANALYZER, "what was live when, and what grew", NULL},
    {"upload", ML_SUBCOMMAND_HOST, "send a pruned dump, or show what would be sent", upload_help},
    {"page", ML_SUBCOMMAND_HOST, "the live page over an ended run", page_help},
    {"env", ML_SUBCOMMAND_HOST, "print what a program needs to join a running memlog", env_help},
    {"doctor", ML_SUBCOMMAND_HOST, "find out why nothing is recorded", doctor_help},
    {"help", ML_SUBCOMMAND_HELP, "this list, or the help of one command", help_help},
    {"--help", ML_SUBCOMMAND_HELP, NULL, help_help},
    {"-h", ML_SUBCOMMAND_HELP, NULL, help_help},
    {"--version", ML_SUBCOMMAND_VERSION, NULL, NULL},
    {"version", ML_SUBCOMMAND_VERSION, NULL, NULL},
};
enum { SUBCOMMANDS_COUNT = sizeof(subcommands) / sizeof(subcommands[0]) };

const struct ml_subcommand *ml_subcommand_find(const char *name) {
    for (size_t i = 0; i < SUBCOMMANDS_COUNT; i++) {
        if (strcmp(name, subcommands[i].name) == 0) {
            return &subcommands[i];
        }
    }
    return NULL;
}

const char *ml_subcommand_suggest(const char *name) {
    const char *names[SUBCOMMANDS_COUNT];
    for (size_t i = 0; i < SUBCOMMANDS_COUNT; i++) {
        names[i] = subcommands[i].name;
    }
    return ml_suggest(name, names, SUBCOMMANDS_COUNT);
}

void ml_subcommand_overview(FILE *out) {
    (void)fputs(
        "memlog shows who holds which memory, over whole process trees.\n"
        "\n"
        "Usage: memlog COMMAND [OPTIONS]\n"
        "\n",
        out
    );
    for (size_t i = 0; i < SUBCOMMANDS_COUNT; i++) {
        const struct ml_subcommand *command = &subcommands[i];
        if (command->summary == NULL) {
            continue;
        }
        (void)fprintf(out, "  %-11s %s\n", command->name, command->summary);
    }
    (void)fputs(
        "\n"
        "'memlog COMMAND --help' explains one command. `memlog --version` names the version.\n"
        "\n"
        "Example:\n"
        "  memlog run -- python3 program.py\n",
        out
    );
}
