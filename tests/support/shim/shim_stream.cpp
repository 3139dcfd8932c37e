// Streams, events, captures and graphs. A stream does its work when it is given; a captured one
// keeps it, and a graph does it again at every launch.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <vector>

#include "shim_runtime.h"

using shim::set_error;
using shim::Work;

struct CUgraph_st {
    std::vector<Work> work;
};

struct CUgraphExec_st {
    std::vector<Work> work;
};

struct CUevent_st {
    bool recorded;
    std::chrono::steady_clock::time_point time;
};

struct CUstream_st {
    cudaStreamCaptureStatus capture;
    cudaStreamCaptureMode mode;
    std::vector<Work> work;
};

namespace shim {

static thread_local cudaError_t last_error = cudaSuccess;
static thread_local std::vector<cudaStream_t> captured; // by this thread

// Streams and events that exist, so that a stale one is an error instead of a crash.
static std::mutex mutex;
static std::vector<cudaStream_t> streams;
static std::vector<cudaEvent_t> events;

template <class T> static bool holds(const std::vector<T> &list, T one) {
    return std::find(list.begin(), list.end(), one) != list.end();
}

template <class T> static void drop(std::vector<T> &list, T one) {
    list.erase(std::remove(list.begin(), list.end(), one), list.end());
}

// The streams of the calling thread, and the others that CUDA names by small numbers.
static bool is_default(cudaStream_t stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

static bool good(cudaStream_t stream) {
    std::lock_guard<std::mutex> lock(mutex);
    return is_default(stream) || holds(streams, stream);
}

static bool good(cudaEvent_t event) {
    std::lock_guard<std::mutex> lock(mutex);
    return holds(events, event);
}

static bool capturing(cudaStream_t stream) {
    return !is_default(stream) && stream->capture != cudaStreamCaptureStatusNone;
}

cudaError_t set_error(cudaError_t error) {
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

cudaError_t refuse_in_capture() {
    cudaError_t error = cudaSuccess;
    for (cudaStream_t stream : captured) {
        if (stream->mode == cudaStreamCaptureModeRelaxed)
            continue;
        stream->capture = cudaStreamCaptureStatusInvalidated;
        error = cudaErrorStreamCaptureUnsupported;
    }
    return set_error(error);
}

cudaError_t submit(cudaStream_t stream, Work work) {
    if (probe() != cudaSuccess)
        return set_error(probe());
    if (!good(stream))
        return set_error(cudaErrorInvalidResourceHandle);
    if (!capturing(stream))
        return set_error(work());
    if (stream->capture == cudaStreamCaptureStatusInvalidated)
        return set_error(cudaErrorStreamCaptureInvalidated);
    stream->work.push_back(std::move(work));
    return cudaSuccess;
}

// A stream that is captured cannot be waited for.
static cudaError_t wait_for(cudaStream_t stream) {
    if (!good(stream))
        return set_error(cudaErrorInvalidResourceHandle);
    if (!capturing(stream))
        return cudaSuccess;
    stream->capture = cudaStreamCaptureStatusInvalidated;
    return set_error(cudaErrorStreamCaptureUnsupported);
}

} // namespace shim

using namespace shim;

cudaError_t cudaGetLastError() {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError() { return last_error; }

// ---- Streams

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    if (!stream || flags > 1)
        return set_error(cudaErrorInvalidValue);
    if (probe() != cudaSuccess)
        return set_error(probe());
    *stream = new CUstream_st();
    std::lock_guard<std::mutex> lock(mutex);
    streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (is_default(stream) || !good(stream))
        return set_error(cudaErrorInvalidResourceHandle);
    drop(captured, stream);
    std::lock_guard<std::mutex> lock(mutex);
    drop(streams, stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return wait_for(stream); }

cudaError_t cudaStreamQuery(cudaStream_t stream) { return wait_for(stream); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    return good(stream) && good(event) ? cudaSuccess : set_error(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaDeviceSynchronize() { return refuse_in_capture(); }

// ---- Events

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    if (!event)
        return set_error(cudaErrorInvalidValue);
    *event = new CUevent_st();
    std::lock_guard<std::mutex> lock(mutex);
    events.push_back(*event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (!good(event))
        return set_error(cudaErrorInvalidResourceHandle);
    std::lock_guard<std::mutex> lock(mutex);
    drop(events, event);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (!good(event))
        return set_error(cudaErrorInvalidResourceHandle);
    return submit(stream, [event] {
        event->recorded = true;
        event->time = std::chrono::steady_clock::now();
        return cudaSuccess;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return good(event) ? cudaSuccess : set_error(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    if (!milliseconds || !good(from) || !good(to) || !from->recorded || !to->recorded)
        return set_error(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
    return cudaSuccess;
}

// ---- Captures and graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    if (!good(stream))
        return set_error(cudaErrorInvalidResourceHandle);
    if (is_default(stream)) // the legacy stream cannot be captured
        return set_error(cudaErrorStreamCaptureUnsupported);
    if (capturing(stream))
        return set_error(cudaErrorInvalidValue);
    stream->capture = cudaStreamCaptureStatusActive;
    stream->mode = mode;
    stream->work.clear();
    captured.push_back(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    if (!graph || !good(stream) || !capturing(stream))
        return set_error(cudaErrorInvalidValue);
    bool valid = stream->capture == cudaStreamCaptureStatusActive;
    stream->capture = cudaStreamCaptureStatusNone;
    drop(captured, stream);
    *graph = nullptr;
    if (!valid) {
        stream->work.clear();
        return set_error(cudaErrorStreamCaptureInvalidated);
    }
    *graph = new CUgraph_st{std::move(stream->work)};
    stream->work.clear();
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    if (!status || !good(stream))
        return set_error(cudaErrorInvalidValue);
    *status = is_default(stream) ? cudaStreamCaptureStatusNone : stream->capture;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    if (!exec || !graph)
        return set_error(cudaErrorInvalidValue);
    *exec = new CUgraphExec_st{graph->work};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    if (!exec)
        return set_error(cudaErrorInvalidValue);
    return submit(stream, [exec] {
        for (const Work &work : exec->work) {
            cudaError_t error = work();
            if (error != cudaSuccess)
                return error;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}
