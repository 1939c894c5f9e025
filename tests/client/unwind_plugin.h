/* What the libraries that unwind_modules_test.c opens and closes have in common. Room: tests. */
#ifndef MEMLOG_TESTS_CLIENT_UNWIND_PLUGIN_H
#define MEMLOG_TESTS_CLIENT_UNWIND_PLUGIN_H

typedef void ml_plugin_probe(void *context);
typedef long ml_plugin_run_fn(ml_plugin_probe *probe, void *context, long depth);

ml_plugin_run_fn ml_plugin_run;

#endif
