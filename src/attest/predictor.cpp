#include "attest/predictor.h"

#include <algorithm>

#include "base/error.h"
#include "core/numbers/host_view.h"
#include "eval/token_figures.h"
#include "model/step.h"

namespace fp8kv {
namespace {

// Rows of logits computed at a time. No result depends on it.
constexpr int64_t kLogitRows = 256;

// A row of a batch whose logits are needed, and the next id.
struct NextToken {
  int32_t row;
  int32_t id;
};

std::vector<NextToken> next_tokens(const TokenWindows& windows, const WindowBatch& batch) {
  std::vector<NextToken> found;
  int32_t row = 0;
  for (size_t w = batch.first; w < batch.first + batch.count; ++w) {
    for (size_t at = 0; at + 1 < windows[w].size(); ++at) {
      found.push_back({row + static_cast<int32_t>(at), windows[w][at + 1]});
    }
    row += static_cast<int32_t>(windows[w].size());
  }
  return found;
}

}  // namespace

Predictor::Predictor(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                     int threads)
    : checkpoint_(checkpoint),
      config_(config),
      backend_(rounding(backend)),
      threads_(threads),
      loader_(checkpoint, config, backend_) {}

Backend& Predictor::rounding(Backend& backend) {
  if (!RoundingBackend::is_needed(backend, config_.dtype)) return backend;
  return rounding_.emplace(backend, config_.dtype);
}

uint64_t Predictor::steps(const TokenWindows& windows) const {
  return static_cast<uint64_t>(config_.n_layers() + 1) * plan_windows(windows).batches.size();
}

std::vector<std::vector<double>> Predictor::log_probs(const TokenWindows& windows,
                                                      const std::vector<Lane>& lanes,
                                                      Progress& progress) {
  MultiCacheRun caches = with_context("working memory", [&] {
    return MultiCacheRun(backend_, config_, windows, lanes, {.threads = threads_});
  });
  caches.embed({checkpoint_, config_, backend_, EmbeddingTable::on_backend});
  for (int64_t index = 0; index < config_.n_layers(); ++index) {
    const LayerWeights weights = loader_.layer(index);
    with_context(cat("layer ", index), [&] {
      caches.begin_layer(index);
      for (const WindowBatch& batch : caches.plan().batches) {
        caches.run(weights, batch);
        progress.advance();
      }
      caches.end_layer();
    });
  }
  const auto by_stream =
      with_context("logits", [&] { return of_streams(caches, windows, progress); });
  std::vector<std::vector<double>> by_lane(lanes.size());
  for (size_t s = 0; s < by_stream.size(); ++s) {
    for (const size_t lane : caches.streams()[s].lanes) by_lane[lane] = by_stream[s];
  }
  return by_lane;
}

std::vector<std::vector<double>> Predictor::of_streams(MultiCacheRun& caches,
                                                       const TokenWindows& windows,
                                                       Progress& progress) {
  backend_.compute_as(kPromptStep);
  const HeadWeights head = loader_.head();
  const Tensor logits = backend_.allocate(DType::f32, Shape{kLogitRows, config_.vocab_size});
  const Tensor rows = backend_.allocate(DType::i32, Shape{kLogitRows});
  const auto width = static_cast<size_t>(config_.vocab_size);
  std::vector<float> on_host;
  std::vector<RowDistribution> scratch(static_cast<size_t>(caches.pool().threads()));
  std::vector<std::vector<double>> found(caches.streams().size());
  for (const WindowBatch& batch : caches.plan().batches) {
    const std::vector<NextToken> next = next_tokens(windows, batch);
    for (size_t first = 0; first < next.size(); first += kLogitRows) {
      const auto part =
          std::span(next).subspan(first, std::min<size_t>(kLogitRows, next.size() - first));
      std::vector<int32_t> wanted;
      for (const NextToken& each : part) wanted.push_back(each.row);
      const auto n = static_cast<int64_t>(part.size());
      const TensorView ids{rows.view().data, DType::i32, Shape{n}};
      const TensorView out{logits.view().data, DType::f32, Shape{n, config_.vocab_size}};
      backend_.copy_in(ids, host_view(wanted));
      for (size_t s = 0; s < found.size(); ++s) {
        caches.forward().head(head, caches.rows_of(caches.streams()[s], batch), ids, out);
        on_host.resize(part.size() * width);
        backend_.download(out, std::as_writable_bytes(std::span(on_host)));
        const size_t begin = found[s].size();
        found[s].resize(begin + part.size());
        caches.pool().run(n, [&](int64_t job, int thread) {
          const auto i = static_cast<size_t>(job);
          RowDistribution& row = scratch[static_cast<size_t>(thread)];
          row.set(std::span(on_host).subspan(i * width, width));
          found[s][begin + i] = -row.nll(part[i].id);
        });
      }
    }
    progress.advance();
  }
  return found;
}

}  // namespace fp8kv
