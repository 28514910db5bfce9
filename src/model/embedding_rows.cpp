#include "model/embedding_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "model/weights.h"

namespace fp8kv {
namespace {

const TensorLocation& location_of(const Checkpoint& checkpoint, const ModelConfig& config) {
  return checkpoint.tensors().at(embedding_name(checkpoint, config));
}

}  // namespace

EmbeddingRows::EmbeddingRows(const Checkpoint& checkpoint, const ModelConfig& config)
    : file_(checkpoint.folder() / checkpoint.shards()[location_of(checkpoint, config).shard].file),
      begin_(location_of(checkpoint, config).entry.begin),
      row_bytes_(static_cast<size_t>(config.dim) * dtype_bytes(config.dtype)) {}

void EmbeddingRows::gather(std::span<const int32_t> ids, std::span<std::byte> rows) const {
  FP8KV_ASSERT(rows.size() == ids.size() * row_bytes_);
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ids[a] < ids[b]; });
  const std::byte* last = nullptr;
  for (size_t i = 0; i < order.size(); ++i) {
    std::byte* to = rows.data() + order[i] * row_bytes_;
    if (i > 0 && ids[order[i]] == ids[order[i - 1]]) {
      std::memcpy(to, last, row_bytes_);
      continue;
    }
    file_.read(begin_ + static_cast<uint64_t>(ids[order[i]]) * row_bytes_, {to, row_bytes_});
    last = to;
  }
}

}  // namespace fp8kv
