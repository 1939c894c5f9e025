/* The figures that a view can be about. Room: tools. */
#ifndef MEMLOG_TOOLS_METRIC_H
#define MEMLOG_TOOLS_METRIC_H

enum ml_metric { ML_METRIC_LIVE, ML_METRIC_PEAK, ML_METRIC_TOTAL };

#endif
