#include "calib/histogram_file.h"

#include <deque>

#include "base/text.h"
#include "core/histogram.h"
#include "formats/safetensors.h"

namespace fp8kv {

std::string histogram_file_bytes(const std::vector<LayerMagnitudes>& layers) {
  // Deques: the views below point into elements, which must not move.
  std::deque<std::vector<uint64_t>> bins;
  std::deque<std::vector<float>> amax;
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& prefix, const std::vector<MagnitudeCounts>& heads) {
    std::vector<uint64_t>& all = bins.emplace_back();
    std::vector<float>& largest = amax.emplace_back();
    for (const MagnitudeCounts& head : heads) {
      all.insert(all.end(), head.bins.begin(), head.bins.end());
      largest.push_back(head.amax);
    }
    const auto n_heads = static_cast<int64_t>(heads.size());
    tensors.push_back({prefix + ".bins",
                       {reinterpret_cast<const std::byte*>(all.data()), DType::u64,
                        Shape{n_heads, kMagnitudeBins}}});
    tensors.push_back(
        {prefix + ".amax",
         {reinterpret_cast<const std::byte*>(largest.data()), DType::f32, Shape{n_heads}}});
  };
  for (size_t i = 0; i < layers.size(); ++i) {
    add(cat("layers.", i, ".q"), layers[i].q);
    add(cat("layers.", i, ".k"), layers[i].k);
    add(cat("layers.", i, ".v"), layers[i].v);
  }
  return safetensors_bytes(
      std::move(tensors),
      {{"schema", "fp8kv.histograms/1"}, {"first_exponent", "-40"}, {"bins_per_octave", "64"}});
}

}  // namespace fp8kv
