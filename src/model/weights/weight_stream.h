// Streams the layers of a checkpoint: each is on the backend only while it is computed with. For a
// device with its own memory, threads read the next layer and copy it there during this one. The
// CPU uses the file mapping in place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model_weights.h"
#include "core/model/config.h"
#include "model/weights/stream_layout.h"
#include "model/weights/weights.h"

namespace fp8kv {

struct StreamOptions {
  int buffers = 2;  // layers on the device at a time: 1 or 2. With 1, reading waits for computing
  int readers = 4;  // threads
  size_t block_bytes = size_t(4) << 20;  // read at a time
  // Reads past the page cache. Absent: only if the checkpoint is larger than half of the memory.
  std::optional<bool> direct = {};
};

// Device memory for one buffer of a stream of these layers.
uint64_t stream_buffer_bytes(const Checkpoint& checkpoint, const ModelConfig& config,
                             const std::vector<StreamedLayer>& layers);

// REQUIRES the checkpoint to have passed read_model_config; checkpoint, config and backend outlive
// the stream.
class WeightStream {
 public:
  // Starts to read the first layers.
  WeightStream(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
               std::vector<StreamedLayer> layers, const StreamOptions& options);
  // Stops reading, at any point.
  ~WeightStream();
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  // The weights of the next layer, for ops given to the backend from now on. Valid until end().
  // Waits for the reading; an interrupt ends the wait. Throws errors of the reading: "reading
  // tensor 'model.layers.3.mlp.up_proj.weight': 'model.safetensors': cannot read: ...".
  const LayerWeights& begin();
  // Call it after the last op with these weights was given to the backend.
  void end();

 private:
  class Device;

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const ModelWeights files_;
  Backend& backend_;
  const std::vector<StreamedLayer> layers_;
  size_t position_ = 0;
  LayerWeights weights_;
  std::unique_ptr<Device> device_;  // null on the CPU
};

}  // namespace fp8kv
