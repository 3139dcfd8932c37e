// Lets CUDA sources be compiled by g++ as C++17 and run on the CPU, for tests: a thread of a CTA is
// a fiber, a barrier or a shuffle a switch to the next one; CTAs run one after another on the
// thread that launches. Sources keep to a dialect: QG_KERNEL, QG_LAUNCH, QG_SHARED and
// QG_DYNAMIC_SHARED instead of __global__, <<<>>> and __shared__.
//
// It finds what shows in results or in who waits for whom: wrong indices, tails and padding;
// missing barriers, by running threads in several orders; uninitialised reads, by poison in fresh
// device memory and in shared memory before each CTA; divergent barriers, wrong masks, lanes that a
// shuffle should not read; writes just outside of an array (reads too under AddressSanitizer).
// Faults end the launch with cudaErrorLaunchFailure, and shim_control.h tells them as text.
//
// It is stricter than hardware: threads that ended do not count as having passed a barrier, a
// warp's operation or its mask, nor do lanes that the CTA lacks.
//
// Limits. There is no asm, so no cvt instruction, no tensor core and no asynchronous copy;
// __activemask knows ended lanes only. A turn lasts from one stop to the next: races that need
// finer interleaving, atomics that should have been used, fences, and races between CTAs do not
// show. Streams do their work at once, so a missing synchronisation does not show either. A thread
// that spins until another one acts spins for ever. What abs, min, division and the rest give is
// the CPU's: compile without contraction of a*b+c.
#ifndef CUDA_SHIM_H
#define CUDA_SHIM_H

#include "shim_device.h"
#include "shim_host.h"
#include "shim_types.h"

#endif
