// Transfers on CUDA and HIP: a stream for every queue, an event for every mark.
#pragma once

#include <memory>

#include "backend/transfers.h"
#include "kernels/device/gpu.h"

namespace fp8kv::FP8KV_GPU {

// `ops` is the stream of the backend's ops, which has to outlive the result.
std::unique_ptr<Transfers> make_transfers(Stream ops);

}  // namespace fp8kv::FP8KV_GPU
