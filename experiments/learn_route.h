// run_sweep --learn-route RESULTS.h5...: a routing table of each GPU from the timings of both kernels.
#ifndef LEARN_ROUTE_H
#define LEARN_ROUTE_H

#include <stdio.h>

// out: the file to write, NULL: reports/device/GPU.route.tsv in the data folder. Rows of other
// recipes and input types that the file holds stay. Says what it wrote on `stream`, what is wrong on
// standard error. Returns the exit code: 4 if no shape was timed with both kernels.
int learn_route(const char *const *results, int count, const char *out, FILE *stream);

#endif
