#include "calib/windows/memory_plan.h"

#include <algorithm>

#include "backend/measuring_backend.h"
#include "base/error.h"
#include "base/text.h"
#include "calib/windows/residual.h"
#include "calib/windows/workspace.h"
#include "model/cache/kv_cache.h"
#include "model/step.h"

namespace fp8kv {
namespace {

// Memory left to the driver and to libraries: this much, or a share if there is little memory.
constexpr uint64_t kLeftFree = uint64_t(512) << 20;
constexpr uint64_t kLeftShare = 8;

// The memory to compute one batch, independent of the plan.
uint64_t working_bytes(const ModelConfig& config, const Backend& backend, const WindowPlan& windows,
                       int64_t n_layers) {
  MeasuringBackend measuring(backend);
  const Workspace workspace(measuring, config, windows, n_layers);
  uint64_t of_ops = 0, largest = 0;
  for (const WindowBatch& batch : windows.batches) {
    const StepShape size{
        .rows = batch.rows,
        .sequences = static_cast<int64_t>(batch.count),
        .max_pages = KvCache::pages_for(windows.longest_window),
        .page_size = kPageSize,
        .n_heads = static_cast<int32_t>(config.n_heads),
        .n_kv_heads = static_cast<int32_t>(config.n_kv_heads()),
        .head_dim = static_cast<int32_t>(config.head_dim()),
        .v_in_k = config.latent.has_value(),
        .dim = config.dim,
        .experts = config.experts ? config.experts->count : 0,
        .expert_hidden_dim = config.experts ? config.experts->hidden_dim : 0,
        .experts_per_token = config.experts ? config.experts->routing.per_token : 0,
        .activation = backend.activation_dtype(config.dtype),
        .computed_as = kPromptStep};
    // Op memory is not freed when an op needs more, so each increase adds up.
    const uint64_t needed = backend.op_memory(size);
    if (needed > largest) of_ops += needed;
    largest = std::max(largest, needed);
  }
  return measuring.bytes() + of_ops;
}

[[noreturn]] void fail_bound(const MemoryBound& bound, uint64_t least) {
  throw Error(cat(bound.name, " ", human_bytes(*bound.bytes),
                  ": too little for this model and these windows, which need ", human_bytes(least),
                  " of device memory"),
              cat("pass ", bound.name, " ", least, "B or more, or take shorter windows"),
              ErrorKind::usage);
}

[[noreturn]] void fail_device(uint64_t free, uint64_t least) {
  throw Error(cat("the device has ", human_bytes(free), " left of its memory, and this model and ",
                  "these windows need ", human_bytes(least)),
              "free memory of the device, or take shorter windows", ErrorKind::resource);
}

}  // namespace

uint64_t memory_beside_weights(const ModelConfig& config, const Backend& backend,
                               const WindowPlan& windows, int64_t n_layers) {
  return working_bytes(config, backend, windows, n_layers) +
         ResidualStream::device_bytes(windows, config.stream_dim(),
                                      backend.activation_dtype(config.dtype), true);
}

MemoryPlan plan_memory(const ModelOnBackend& model, const WindowPlan& windows,
                       const std::vector<StreamedLayer>& layers, const MemoryBound& bound) {
  const auto& [checkpoint, config, backend] = model;
  const std::optional<DeviceMemory> memory = backend.memory();
  if (!memory) {
    if (!bound.bytes) return {};
    throw Error(cat(bound.name, " ", human_bytes(*bound.bytes),
                    ": bounds the memory of a device, and this runs on the CPU (",
                    backend.describe(), "), which uses the model's files in place"),
                "leave it out, or take fewer windows", ErrorKind::usage);
  }
  const DType activation = backend.activation_dtype(config.dtype);
  const uint64_t layer_bytes = stream_buffer_bytes(checkpoint, config, layers);
  const uint64_t working =
      working_bytes(config, backend, windows, layers.back().index + 1) + bound.beside;
  const uint64_t all_rows =
      ResidualStream::device_bytes(windows, config.stream_dim(), activation, true);
  const uint64_t two_batches =
      ResidualStream::device_bytes(windows, config.stream_dim(), activation, false);
  const int most_buffers = static_cast<int>(std::min<size_t>(2, layers.size()));
  const auto make = [&](int buffers, bool resident) {
    const uint64_t bytes = static_cast<uint64_t>(buffers) * layer_bytes + working +
                           (resident ? all_rows : two_batches);
    return MemoryPlan{buffers, resident, bytes, resident ? 0 : all_rows};
  };
  std::vector<MemoryPlan> plans = {make(most_buffers, true), make(most_buffers, false),
                                   make(1, true), make(1, false)};
  const uint64_t least =
      std::min_element(plans.begin(), plans.end(), [](const auto& a, const auto& b) {
        return a.bytes < b.bytes;
      })->bytes;
  if (bound.bytes && least > *bound.bytes) fail_bound(bound, least);
  const uint64_t free =
      memory->free ? *memory->free - std::min(*memory->free / kLeftShare, kLeftFree) : UINT64_MAX;
  if (least > free) fail_device(*memory->free, least);
  const uint64_t most = std::min(bound.bytes.value_or(UINT64_MAX), free);
  return *std::find_if(plans.begin(), plans.end(),
                       [&](const MemoryPlan& plan) { return plan.bytes <= most; });
}

}  // namespace fp8kv
