// A backend that forwards to another, and notes every row of logits that is drawn from, by seed and
// position. So a test sees a sequence's logits to the last bit.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "backend/forwarding_backend.h"

namespace fp8kv::test {

class LogitTap final : public ForwardingBackend {
 public:
  using Rows = std::map<std::pair<uint64_t, int32_t>, std::vector<float>>;

  using ForwardingBackend::ForwardingBackend;

  Rows rows;

  void project_append(const ConstTensorView& x, const InputNorm& entry,
                      const AttentionWeights& weights, const RopeAppend& args) override {
    inner().project_append(x, entry, weights, args);
  }
  void hidden(const ConstTensorView& x, const InputNorm& entry,
              const HiddenProducts& products) override {
    inner().hidden(x, entry, products);
  }
  void sample(const ConstTensorView& logits, const Sampling& sampling,
              const TensorView& ids) override {
    const auto values = get<float>(logits);
    const auto seeds = get<uint64_t>(sampling.seed);
    const auto positions = get<int32_t>(sampling.position);
    const auto width = static_cast<std::ptrdiff_t>(logits.shape[1]);
    for (size_t i = 0; i < seeds.size(); ++i) {
      const auto row = values.begin() + static_cast<std::ptrdiff_t>(i) * width;
      rows[{seeds[i], positions[i]}].assign(row, row + width);
    }
    ForwardingBackend::sample(logits, sampling, ids);
  }

 private:
  template <typename T>
  std::vector<T> get(const ConstTensorView& view) {
    std::vector<T> values(static_cast<size_t>(view.shape.elements()));
    download(view, std::as_writable_bytes(std::span(values)));
    return values;
  }
};

}  // namespace fp8kv::test
