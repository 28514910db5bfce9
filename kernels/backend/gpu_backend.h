// A Backend on a GPU, made of the kernels of this folder.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace fp8kv::FP8KV_GPU {

// Throws a device error that says why there is no device to use.
std::unique_ptr<Backend> make_gpu_backend();

}  // namespace fp8kv::FP8KV_GPU
