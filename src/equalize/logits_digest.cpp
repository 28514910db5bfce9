#include "equalize/logits_digest.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "core/numbers/host_view.h"
#include "eval/multi_cache_run.h"
#include "model/embedding.h"
#include "model/step.h"
#include "model/weights/weight_loader.h"

namespace fp8kv {
namespace {

// Rows of logits computed at a time.
constexpr int64_t kLogitRows = 128;

void add_logits(MultiCacheRun& rows, const HeadWeights& head, const WindowBatch& batch,
                Backend& backend, const Tensor& logits, Sha256& digest) {
  const Tensor ids = backend.allocate(DType::i32, Shape{kLogitRows});
  const int64_t vocab_size = logits.view().shape[1];
  for (int64_t first = 0; first < batch.rows; first += kLogitRows) {
    const int64_t n = std::min(kLogitRows, batch.rows - first);
    std::vector<int32_t> wanted(static_cast<size_t>(n));
    std::iota(wanted.begin(), wanted.end(), static_cast<int32_t>(first));
    const TensorView of_rows{ids.view().data, DType::i32, Shape{n}};
    const TensorView out{logits.view().data, DType::f32, Shape{n, vocab_size}};
    backend.copy_in(of_rows, host_view(wanted));
    rows.forward().head(head, rows.rows_of(rows.streams()[0], batch), of_rows, out);
    std::vector<float> values(static_cast<size_t>(out.shape.elements()));
    backend.download(out, std::as_writable_bytes(std::span(values)));
    digest.add({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
}

}  // namespace

std::string logits_digest(const ModelOnBackend& model,
                          const std::vector<std::vector<int32_t>>& windows, int threads, Log& log) {
  const auto& [checkpoint, config, backend] = model;
  const WeightLoader loader(checkpoint, config, backend);
  MultiCacheRun rows(backend, config, windows, {{config.dtype, nullptr}}, {.threads = threads});
  const std::vector<WindowBatch>& batches = rows.plan().batches;
  Progress progress(log, "proving",
                    static_cast<uint64_t>(config.n_layers() + 1) * uint64_t{batches.size()});
  rows.embed({checkpoint, config, backend, EmbeddingTable::on_backend});
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const LayerWeights weights = loader.layer(index);
    with_context(cat("layer ", index), [&] {
      rows.begin_layer(index);
      for (const WindowBatch& batch : batches) {
        rows.run(weights, batch);
        progress.advance();
      }
      rows.end_layer();
    });
  }
  backend.compute_as(kPromptStep);
  const HeadWeights head = loader.head();
  const Tensor logits = backend.allocate(DType::f32, Shape{kLogitRows, config.vocab_size});
  Sha256 digest;
  for (const WindowBatch& batch : batches) {
    add_logits(rows, head, batch, backend, logits, digest);
    progress.advance();
  }
  return digest.hex();
}

}  // namespace fp8kv
