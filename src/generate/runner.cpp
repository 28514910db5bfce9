#include "generate/runner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "base/error.h"
#include "core/numbers/host_view.h"
#include "model/weights/weight_loader.h"

namespace fp8kv {
namespace {

// Returns make(). Errors of allocations name "working memory".
template <typename Make>
auto working_memory(Make make) {
  return with_context("working memory", make);
}

// Counts a tensor once per address: the embedding may also be the output matrix.
uint64_t bytes_of(const std::vector<const Tensor*>& weights) {
  std::map<const std::byte*, uint64_t> bytes;
  for (const Tensor* each : weights) {
    if (each->view().data != nullptr) bytes[each->view().data] = each->view().bytes();
  }
  uint64_t sum = 0;
  for (const auto& [data, size] : bytes) sum += size;
  return sum;
}

}  // namespace

Runner::Runner(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
               const RunnerSizes& sizes)
    : config_(config),
      backend_(backend),
      sizes_(sizes),
      most_rows_decoded_(bucket_for(sizes.max_sequences)),
      most_rows_(std::max(sizes.max_rows, most_rows_decoded_)),
      step_(working_memory([&] {
        return Step(backend, most_rows_, most_rows_decoded_, KvCache::pages_for(sizes.max_tokens),
                    config.block.differential);
      })),
      forward_(
          working_memory([&] { return Forward(backend, config, most_rows_, sizes.max_tokens); })),
      states_(working_memory([&] { return LayerStates(backend, config, sizes.states); })),
      chosen_(working_memory([&] {
        return ChosenTokens(backend, config, {most_rows_, most_rows_, sizes.max_tokens});
      })),
      sampling_(working_memory([&] { return SamplingRows(backend, most_rows_decoded_); })) {
  with_context("working memory", [&] {
    x_ = backend.allocate(forward_.activation_dtype(), Shape{most_rows_, config.stream_dim()});
    logits_ = backend.allocate(DType::f32, Shape{most_rows_decoded_, config.vocab_size});
    positions_ = backend.allocate(DType::i32, Shape{most_rows_decoded_});
    next_ids_ = backend.allocate(DType::i32, Shape{most_rows_decoded_});
  });
  const WeightLoader loader(checkpoint, config, backend);
  embedding_.emplace(checkpoint, config, backend, EmbeddingTable::on_backend);
  for (int64_t i = 0; i < config.n_layers(); ++i) layers_.push_back(loader.layer(i));
  head_ = loader.head();
  std::vector<const Tensor*> weights = embedding_->weights();
  for (const LayerWeights& layer : layers_) {
    for (const Tensor& each : layer.storage) weights.push_back(&each);
  }
  for (const Tensor& each : head_.storage) weights.push_back(&each);
  weight_bytes_ = bytes_of(weights);
}

// Rounds to a power of two, so that only a few sizes of steps are recorded.
int64_t Runner::bucket_for(int64_t n) const {
  if (!backend_.can_record()) return n;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
}

int64_t Runner::padding_pages() const {
  return backend_.can_record() ? KvCache::pages_for(most_rows_decoded_ / 2) : 0;
}

uint64_t Runner::working_bytes() const {
  uint64_t bytes =
      step_.bytes() + forward_.bytes() + states_.bytes() + chosen_.bytes() + sampling_.bytes();
  for (const Tensor* each : {&x_, &logits_, &positions_, &next_ids_}) bytes += each->view().bytes();
  return bytes;
}

void Runner::gather(std::span<const StepPart> parts, StepSize computed_as) {
  step_.clear(computed_as);
  for (const StepPart& part : parts) {
    step_.add(part.ids, *part.sequence, part.next.has_value(), part.state, part.before);
  }
}

std::vector<int32_t> Runner::prefill(std::span<const StepPart> parts, const KvCache& cache) {
  gather(parts, kPromptStep);
  std::vector<SamplingOptions> sampling;
  std::vector<int32_t> positions;
  for (const StepPart& part : parts) {
    if (!part.next) continue;
    sampling.push_back(*part.next);
    positions.push_back(static_cast<int32_t>(part.sequence->tokens));
  }
  const auto n = static_cast<int64_t>(sampling.size());
  const TensorView drawn_at = positions_.first(n);
  return with_context(cat("reading ", count_of(static_cast<uint64_t>(step_.rows()), "token")), [&] {
    step_.upload();
    if (n > 0) {
      sampling_.upload(sampling);
      backend_.copy_in(drawn_at, host_view(positions));
    }
    forward(cache, drawn_at);
    // Waits for the step even if it draws no token. Otherwise the next step would be charged with
    // this one's time.
    if (n == 0) wait();
    return drawn(n);
  });
}

void Runner::logits(std::span<const StepPart> parts, const KvCache& cache,
                    std::span<const int32_t> rows, const TakeLogits& take) {
  gather(parts, kPromptStep);
  with_context(cat("reading ", count_of(static_cast<uint64_t>(step_.rows()), "token")), [&] {
    step_.upload();
    forward(cache, {});
    backend_.compute_as(kPromptStep);
    std::vector<float> logits;
    for (size_t first = 0; first < rows.size();) {
      const size_t n = std::min(rows.size() - first, static_cast<size_t>(most_rows_decoded_));
      const TensorView ids = positions_.first(static_cast<int64_t>(n));
      backend_.copy_in(ids, host_view(rows.subspan(first, n)));
      const TensorView out = logits_.first(static_cast<int64_t>(n));
      forward_.head(head_, x_.first(step_.rows()), ids, out);
      logits.resize(static_cast<size_t>(out.shape.elements()));
      backend_.download(out, std::as_writable_bytes(std::span(logits)));
      take(first, logits);
      first += n;
    }
  });
}

std::vector<int32_t> Runner::decode(std::span<const StepPart> parts, const KvCache& cache) {
  const int64_t rows = bucket_for(static_cast<int64_t>(parts.size()));
  gather(parts, decode_size());
  step_.pad(rows, cache.padding_page());
  std::vector<SamplingOptions> sampling;
  for (const StepPart& part : parts) sampling.push_back(*part.next);
  sampling.resize(static_cast<size_t>(rows));
  return with_context(cat("decoding ", count_of(parts.size(), "sequence")), [&] {
    step_.upload();
    sampling_.upload(sampling);
    advance(cache, rows);
    return drawn(static_cast<int64_t>(parts.size()));
  });
}

// Runs a step of `rows` rows. The first run of this size allocates memory, the second is recorded,
// and later ones replay the recording.
void Runner::advance(const KvCache& cache, int64_t rows) {
  const ConstTensorView& positions = step_.batch().context_len;
  Bucket& bucket = buckets_[rows];
  // Steps with per-layer inputs are not recorded: the host looks these inputs up.
  const bool tables = config_.experts && config_.experts->table_layers > 0;
  const bool looks_up = config_.layer_input_dim > 0 || config_.ngrams || tables;
  if (!bucket.has_run || !backend_.can_record() || looks_up) {
    forward(cache, positions);
    bucket.has_run = true;
    return;
  }
  if (!bucket.recording) {
    backend_.begin_recording();
    forward(cache, positions);
    bucket.recording = backend_.end_recording();
  }
  backend_.replay(bucket.recording);
}

// Embeds, runs all layers, and draws the next ids. `positions` are those of the drawn tokens.
void Runner::forward(const KvCache& cache, const ConstTensorView& positions) {
  const TensorView x = x_.first(step_.rows());
  embedding_->embed(step_, x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    forward_.layer(layer, layers_[i], x,
                   {.batch = step_.batch(),
                    .kv = cache.layer(layer),
                    .state = states_.layer(layer),
                    .input = embedding_->layer_input(step_, layer),
                    .choice = {cache.index_keys(layer), chosen_.rows(0, step_.rows())}});
  }
  const ConstTensorView rows = step_.last_rows();
  const int64_t n = rows.shape[0];
  if (n == 0) return;
  const TensorView logits = logits_.first(n);
  // So a row's logits have the same bits after a prompt as after a single token.
  backend_.compute_as(decode_size());
  forward_.head(head_, x, rows, logits);
  backend_.sample(logits, sampling_.at(positions), next_ids_.first(n));
}

void Runner::wait() {
  std::array<int32_t, 1> unused;
  backend_.download(next_ids_.first(1), std::as_writable_bytes(std::span(unused)));
}

std::vector<int32_t> Runner::drawn(int64_t n) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  if (n == 0) return ids;
  backend_.download(next_ids_.first(n), std::as_writable_bytes(std::span(ids)));
  for (const int32_t id : ids) {
    if (id < 0) fail("the logit of token ", -1 - id, " is NaN");
  }
  return ids;
}

void Runner::drawn_logits(size_t index, std::span<float> out) {
  const TensorView all = logits_.view();
  const size_t row_bytes = static_cast<size_t>(config_.vocab_size) * sizeof(float);
  const TensorView row = {all.data + index * row_bytes, DType::f32, Shape{1, config_.vocab_size}};
  backend_.download(row, std::as_writable_bytes(out));
}

}  // namespace fp8kv
