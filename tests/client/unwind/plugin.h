/* What the libraries that modules_test.c opens and closes have in common. Room: tests. */
#ifndef MEMLOG_TESTS_CLIENT_UNWIND_PLUGIN_H
#define MEMLOG_TESTS_CLIENT_UNWIND_PLUGIN_H

/* The environment may name, in hexadecimal, a ml_plugin_probe that unwind_plugin_c.so calls when it
 * is loaded. */
#define ML_PLUGIN_VARIABLE "MEMLOG_TEST_PLUGIN_PROBE"

typedef void ml_plugin_probe(void *context);
typedef long ml_plugin_run_fn(ml_plugin_probe *probe, void *context, long depth);

ml_plugin_run_fn ml_plugin_run;

#endif
