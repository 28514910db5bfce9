// Samples of K as a cache would hold it, and the second moment of the queries that read it, for
// each KV head. The search for better exponents uses them. This backend inspects every rotation and
// forwards it to another backend.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backend/forwarding_backend.h"
#include "base/machine/thread_pool.h"
#include "core/model/config.h"

namespace fp8kv {

// One KV head, sampled in one part of the text.
struct HeadSample {
  int64_t dim = 0;
  std::vector<float> keys;    // [rows, dim], rotated, normed and rounded
  std::vector<size_t> ends;   // [windows]: the number of rows up to each window's end
  std::vector<float> moment;  // [dim, dim]: sum of q q' over the query heads, mean over rows

  size_t rows() const { return ends.empty() ? 0 : ends.back(); }
};

// Exponents are searched on the first part and judged on the second.
enum class TextPart { search, guard };
inline constexpr size_t kSampleParts = 2;

struct LayerSample {
  std::array<std::vector<HeadSample>, kSampleParts> parts;  // [n_kv_heads] each

  const std::vector<HeadSample>& of(TextPart part) const {
    return parts[static_cast<size_t>(part)];
  }
};

struct KeySampleOptions {
  size_t search_windows = 0;  // windows of the first part; the rest are the second
  int64_t most_rows = 768;    // in a part: every n-th row is kept
  int threads = 1;
};

class KeySamples final : public ForwardingBackend {
 public:
  // `inner` outlives this. REQUIRES windows in both parts.
  KeySamples(Backend& inner, const ModelConfig& config,
             const std::vector<std::vector<int32_t>>& windows, const KeySampleOptions& options);

  void rope_append(const RopeAppend& args) override;

  // Call it after all windows went through layer `index`, in order.
  void end_layer(int64_t index);

  // The samples of each layer; no heads if a layer writes no cache. The same bits for any number of
  // threads.
  std::vector<LayerSample>& layers() { return layers_; }

 private:
  // A row of a batch that is kept as a sample.
  struct Kept {
    int64_t row;  // within the batch
    size_t part;
  };
  std::vector<Kept> kept_rows(int64_t rows);
  void take(const RopeAppend& args, const std::vector<Kept>& kept, int64_t head);
  void finish(size_t part, HeadSample& sample) const;

  std::array<std::vector<int64_t>, kSampleParts> window_rows_;  // [windows]
  std::array<int64_t, kSampleParts> part_rows_{}, every_{};
  ThreadPool pool_;
  int64_t row_ = 0;  // rows of the windows seen so far in this layer
  std::vector<LayerSample> layers_;
  LayerSample current_;
  std::array<std::vector<std::vector<double>>, kSampleParts> moments_;  // [n_kv_heads]
  std::vector<float> q_, k_;
};

}  // namespace fp8kv
