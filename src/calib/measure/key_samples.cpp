#include "calib/measure/key_samples.h"

#include <span>
#include <utility>

#include "backend/download_floats.h"
#include "base/error.h"

namespace fp8kv {

KeySamples::KeySamples(Backend& inner, const ModelConfig& config,
                       const std::vector<std::vector<int32_t>>& windows,
                       const KeySampleOptions& options)
    : ForwardingBackend(inner), pool_(options.threads) {
  FP8KV_ASSERT(options.search_windows > 0 && options.search_windows < windows.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    const size_t part = i < options.search_windows ? 0 : 1;
    const auto rows = static_cast<int64_t>(windows[i].size());
    window_rows_[part].push_back(rows);
    part_rows_[part] += rows;
  }
  for (size_t part = 0; part < kSampleParts; ++part) {
    every_[part] = (part_rows_[part] + options.most_rows - 1) / options.most_rows;
  }
  layers_.resize(static_cast<size_t>(config.n_layers()));
}

std::vector<KeySamples::Kept> KeySamples::kept_rows(int64_t rows) {
  std::vector<Kept> kept;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row_ + row;
    const size_t part = at < part_rows_[0] ? 0 : 1;
    const int64_t within = part == 0 ? at : at - part_rows_[0];
    if (within % every_[part] == 0) kept.push_back({row, part});
  }
  row_ += rows;
  return kept;
}

void KeySamples::rope_append(const RopeAppend& args) {
  inner().rope_append(args);
  const int64_t n_heads = args.k.shape[1];
  if (n_heads == 0) return;
  for (size_t part = 0; part < kSampleParts; ++part) {
    current_.parts[part].resize(static_cast<size_t>(n_heads));
    moments_[part].resize(static_cast<size_t>(n_heads));
  }
  const std::vector<Kept> kept = kept_rows(args.q.shape[0]);
  if (kept.empty()) return;
  download_floats(inner(), args.q, q_);
  download_floats(inner(), args.k, k_);
  pool_.run(n_heads, [&](int64_t head, int /*thread*/) { take(args, kept, head); });
}

void KeySamples::take(const RopeAppend& args, const std::vector<Kept>& kept, int64_t head) {
  const int64_t n_heads = args.k.shape[1], dim = args.k.shape[2];
  const int64_t n_queries = args.q.shape[1], group = n_queries / n_heads;
  const auto size = static_cast<size_t>(dim);
  for (const Kept& each : kept) {
    HeadSample& sample = current_.parts[each.part][static_cast<size_t>(head)];
    sample.dim = dim;
    const float* key = k_.data() + (each.row * n_heads + head) * dim;
    sample.keys.insert(sample.keys.end(), key, key + dim);
    std::vector<double>& moment = moments_[each.part][static_cast<size_t>(head)];
    moment.resize(size * size);
    for (int64_t query = head * group; query < (head + 1) * group; ++query) {
      const float* q = q_.data() + (each.row * n_queries + query) * dim;
      for (size_t i = 0; i < size; ++i) {
        double* to = moment.data() + i * size;
        for (size_t j = 0; j <= i; ++j) to[j] += double{q[i]} * double{q[j]};
      }
    }
  }
}

// Notes the row at which each window ends.
void KeySamples::finish(size_t part, HeadSample& sample) const {
  int64_t row = 0;
  for (const int64_t rows : window_rows_[part]) {
    row += rows;
    sample.ends.push_back(static_cast<size_t>((row + every_[part] - 1) / every_[part]));
  }
  FP8KV_ASSERT(sample.keys.size() == sample.rows() * static_cast<size_t>(sample.dim));
}

void KeySamples::end_layer(int64_t index) {
  FP8KV_ASSERT(row_ == 0 || row_ == part_rows_[0] + part_rows_[1]);
  for (size_t part = 0; part < kSampleParts; ++part) {
    for (size_t head = 0; head < current_.parts[part].size(); ++head) {
      HeadSample& sample = current_.parts[part][head];
      const std::vector<double>& sums = moments_[part][head];
      const auto size = static_cast<size_t>(sample.dim);
      finish(part, sample);
      const auto rows = static_cast<double>(sample.rows());
      sample.moment.resize(size * size);
      for (size_t i = 0; i < size; ++i) {
        for (size_t j = 0; j <= i; ++j) {
          const auto mean = static_cast<float>(sums[i * size + j] / rows);
          sample.moment[i * size + j] = sample.moment[j * size + i] = mean;
        }
      }
    }
    moments_[part].clear();
  }
  layers_[static_cast<size_t>(index)] = std::exchange(current_, {});
  row_ = 0;
}

}  // namespace fp8kv
