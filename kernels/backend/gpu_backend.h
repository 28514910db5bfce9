// A Backend on a GPU, made of the kernels of this folder.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace fp8kv::FP8KV_GPU {

// Throws a device error with the reason if there is no usable device.
std::unique_ptr<Backend> make_gpu_backend();

}  // namespace fp8kv::FP8KV_GPU
