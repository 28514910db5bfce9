// A small model with several layers in several files, and windows for several batches. Enough to
// check that a calibration does not depend on how memory is divided.
#pragma once

#include <cstdint>
#include <vector>

#include "base/log.h"
#include "calib/collect.h"
#include "checkpoint/model/read_model_config.h"
#include "support/models/tiny_checkpoint.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

struct StreamedModel {
  explicit StreamedModel(DType dtype = DType::f32, int64_t n_layers = 4)
      : checkpoint([&] {
          TinyConfig shape = tiny_config();
          shape.dtype = dtype;
          shape.n_layers = n_layers;
          write_tiny_checkpoint(folder / "model", shape, {.n_shards = 3});
          return Checkpoint::open(folder / "model");
        }()),
        config(read_model_config(checkpoint)) {}

  std::vector<LayerMagnitudes> collect(Backend& backend, CollectOptions options = {}) const {
    Log log(Verbosity::quiet);
    options.batch_rows = kRows;
    return collect_magnitudes({checkpoint, config, backend}, windows(), log, options);
  }

  // Five batches of up to kRows rows. One batch has a single row.
  static std::vector<std::vector<int32_t>> windows() {
    std::vector<std::vector<int32_t>> windows;
    int32_t next = 5;
    for (const int length : {9, 7, 16, 3, 12, 16, 1}) {
      std::vector<int32_t>& window = windows.emplace_back();
      for (int i = 0; i < length; ++i) window.push_back(next = (next * 37 + 11) % 64);
    }
    return windows;
  }

  CalibrationState state(const Backend& backend) const {
    return {folder / "out.partial", run_identity("1.2.3", checkpoint, config, windows(), backend)};
  }

  static constexpr int64_t kRows = 16;
  TempDir folder;
  Checkpoint checkpoint;
  ModelConfig config;
};

inline bool same_bits(const std::vector<MagnitudeCounts>& a,
                      const std::vector<MagnitudeCounts>& b) {
  bool same = a.size() == b.size();
  for (size_t head = 0; same && head < a.size(); ++head) {
    same = float_bits(a[head].amax) == float_bits(b[head].amax) && a[head].bins == b[head].bins;
  }
  return same;
}

inline bool same_bits(const std::vector<LayerMagnitudes>& a,
                      const std::vector<LayerMagnitudes>& b) {
  bool same = a.size() == b.size();
  for (size_t layer = 0; same && layer < a.size(); ++layer) {
    same = same_bits(a[layer].q, b[layer].q) && same_bits(a[layer].k, b[layer].k) &&
           same_bits(a[layer].v, b[layer].v);
  }
  return same;
}

}  // namespace fp8kv::test
