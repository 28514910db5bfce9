#include "model/parts/sparse/chosen_tokens.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/numbers/host_view.h"
#include "model/parts/sparse/indexer.h"

namespace fp8kv {

ChosenTokens::ChosenTokens(Backend& backend, const ModelConfig& config, const ChosenSizes& sizes) {
  if (!IndexerForward::is_needed(config, sizes.max_positions)) return;
  const IndexerConfig& indexer = *config.indexer;
  const auto reuses = [](const LayerDescription& layer) { return layer.index_bytes == 0; };
  keeps_all_ = indexer.is_dsa() && std::any_of(config.layers.begin(), config.layers.end(), reuses);
  const int64_t rows = keeps_all_ ? sizes.all_rows : sizes.most_rows;
  const int64_t most = indexer.most_blocks();
  memory_ = backend.allocate(
      DType::i32, indexer.by_kv_head ? Shape{rows, indexer.n_heads, most} : Shape{rows, most});
}

TensorView ChosenTokens::rows(int64_t first, int64_t n) const {
  const TensorView& all = memory_.view();
  if (all.data == nullptr) return {};
  const int64_t from = keeps_all_ ? first : 0;
  const int64_t of_row = all.shape.elements() / all.shape[0];
  const Shape shape =
      all.shape.rank() == 3 ? Shape{n, all.shape[1], all.shape[2]} : Shape{n, all.shape[1]};
  return {all.data + from * of_row * static_cast<int64_t>(sizeof(int32_t)), DType::i32, shape};
}

void ChosenTokens::copy(Backend& backend, const ChosenTokens& other) {
  if (!keeps_all_) return;
  std::vector<int32_t> ids(static_cast<size_t>(memory_.view().shape.elements()));
  backend.download(other.memory_.view(), std::as_writable_bytes(std::span(ids)));
  backend.copy_in(memory_.view(), host_view(ids, memory_.view().shape));
}

}  // namespace fp8kv
