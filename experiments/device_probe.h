// Whether a CUDA device answers, asked without touching it in this process.
#ifndef DEVICE_PROBE_H
#define DEVICE_PROBE_H

#include <qg_cuda.h>

typedef struct device_probe {
    bool answers;
    qg_cuda_absence absence;
    char reason[1024];     // one line that says what to do; "" where it answers
    qg_cuda_device device; // where it answers
} device_probe;

// Asked at the first call, in a child process; later calls return the same. Not thread-safe: call it
// before threads start.
const device_probe *device_probe_cuda(void);

// The same if it was asked for before, else NULL.
const device_probe *device_probe_known(void);

#endif
