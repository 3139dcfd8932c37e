// What steers the choice between the kernels of groups in a sweep: the lever, and the routes learned
// of the present device. Both are the cuda backend's.
#ifndef GROUP_ROUTE_H
#define GROUP_ROUTE_H

#include <qg_case.h>

// Installs the lever: the value of --group-kernel (or NULL), else QG_GROUP_KERNEL, else auto. Before
// workers start. 0, or the exit code after one line to standard error.
int group_lever_choose(const char *option);

// Before a case runs, in the worker: gives the backend the rows of the case's recipe and input type,
// if it is cuda's and a file of routes of its device is there; else none. QG_ERROR_DATA,
// QG_ERROR_IO: the file is there and cannot be used.
qg_status group_route_use(const qg_case *c);

#endif
