#include "eval/evaluate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "calib/collect.h"
#include "core/numbers/host_view.h"
#include "eval/greedy_probe.h"
#include "eval/multi_cache_run.h"
#include "eval/token_figures.h"
#include "model/step.h"
#include "model/weights/weight_loader.h"

namespace fp8kv {
namespace {

// The memory for logits: those of the baseline and of one other stream, on the host and on the
// backend, and the baseline's weights.
constexpr int64_t kLogitBytes = int64_t{256} << 20;
constexpr int64_t kBytesPerLogit = 3 * sizeof(float) + sizeof(double);
// The most rows of logits at a time: more do not speed up the matrix product.
constexpr int64_t kMostLogitRows = 1024;

// A row whose logits are needed.
struct Prediction {
  int64_t row = 0;     // within the batch
  int32_t target = 0;  // the id that comes next
  size_t index = 0;    // its entry in the log
};

// The predictions of another model: its last residual stream, and its head.
class ReferencePass {
 public:
  // Takes the same `windows` and `n_windows` as the compared models, and so has the same batches.
  ReferencePass(const EvalReference& reference, Backend& backend,
                const std::vector<std::vector<int32_t>>& windows, size_t n_windows,
                const EvalOptions& options)
      : loader_(reference.checkpoint, reference.config, backend),
        rows_(backend, reference.config, windows, {{options.baseline, nullptr}},
              {.n_measured = n_windows, .threads = options.threads}),
        n_layers_(reference.config.n_layers()) {
    rows_.embed({reference.checkpoint, reference.config, backend, EmbeddingTable::on_backend});
  }

  void run(Progress& progress) {
    for (int64_t index = 0; index < n_layers_; ++index) {
      const LayerWeights weights = loader_.layer(index);
      with_context(cat("layer ", index, " of the other model"), [&] {
        rows_.begin_layer(index);
        for (const WindowBatch& batch : rows_.plan().batches) {
          rows_.run(weights, batch);
          progress.advance();
        }
        rows_.end_layer();
      });
    }
  }

  uint64_t steps() const {
    return static_cast<uint64_t>(n_layers_) * uint64_t{rows_.plan().batches.size()};
  }
  HeadWeights head() { return loader_.head(); }
  void logits(const HeadWeights& weights, const WindowBatch& batch, const TensorView& ids,
              const TensorView& out) {
    rows_.forward().head(weights, rows_.rows_of(rows_.streams()[0], batch), ids, out);
  }

 private:
  WeightLoader loader_;
  MultiCacheRun rows_;
  int64_t n_layers_;
};

class Evaluator {
 public:
  Evaluator(const ModelOnBackend& model, const std::vector<std::vector<int32_t>>& windows,
            const EvalOptions& options, EvalReport& report, Log& log)
      : backend_(model.backend),
        config_(report.config),
        report_(report),
        n_windows_(windows.size()),
        windows_(windows),
        checkpoint_(model.checkpoint),
        loader_(checkpoint_, config_, backend_),
        probes_(with_context("greedy texts", [&] {
          const EvalReference* other = options.against;
          return make_greedy_probes(
              {other ? other->checkpoint : checkpoint_, other ? other->config : config_, backend_},
              options.baseline, windows, options.greedy_tokens);
        })) {
    for (const GreedyProbe& probe : probes_) windows_.push_back(probe.ids);
    std::vector<Lane> lanes;
    if (!options.against) lanes.push_back({options.baseline, nullptr});
    for (const CandidateReport& each : report.candidates) {
      lanes.push_back({cache_of(each, config_), each.scales ? &*each.scales : nullptr});
    }
    with_context("working memory", [&] {
      caches_.emplace(backend_, config_, windows_, std::move(lanes),
                      MultiCacheOptions{.n_measured = options.layer_errors ? n_windows_ : 0,
                                        .attention_rows = options.attention_rows,
                                        .threads = options.threads});
      if (options.against) {
        reference_.emplace(*options.against, backend_, windows_, n_windows_, options);
      }
    });
    report_.attention_tokens = static_cast<uint64_t>(caches_->attention_rows());
    const size_t batches = caches_->plan().batches.size();
    find_half();
    progress_.emplace(log, options.doing,
                      static_cast<uint64_t>(config_.n_layers() + head_steps()) * uint64_t{batches} +
                          (reference_ ? reference_->steps() : 0));
  }

  void run() {
    if (reference_) reference_->run(*progress_);
    caches_->embed({checkpoint_, config_, backend_, EmbeddingTable::on_backend});
    for (int64_t index = 0; index < config_.n_layers(); ++index) layer(index);
    list_predictions();
    with_context("logits", [&] { head(); });
    fill_figures();
  }

 private:
  CandidateReport& lane_report(size_t lane) {
    if (reference_) return report_.candidates[lane];
    return lane == 0 ? report_.baseline : report_.candidates[lane - 1];
  }

  // Finds the batch at which the second half of the windows begins.
  void find_half() {
    for (const WindowBatch& batch : caches_->plan().batches) {
      if (batch.first + batch.count > n_windows_ / 2) return;
      half_ = batch.index + 1;
      report_.half.tokens = static_cast<uint64_t>(batch.first_row + batch.rows);
    }
  }

  void layer(int64_t index) {
    const LayerWeights weights = loader_.layer(index);
    with_context(cat("layer ", index), [&] {
      caches_->begin_layer(index);
      for (const WindowBatch& batch : caches_->plan().batches) {
        caches_->run(weights, batch);
        progress_->advance();
        if (batch.index + 1 == half_) {
          const auto& counted = caches_->magnitudes();
          report_.half.layers.push_back(counted ? download_amax(backend_, *counted) : LayerAmax());
        }
      }
    });
    const auto& counted = caches_->magnitudes();
    report_.magnitudes.push_back(counted ? download_magnitudes(backend_, *counted, index)
                                         : LayerMagnitudes());
    report_.first_tokens.push_back(caches_->first_tokens());
    const std::vector<LaneErrors> errors = caches_->end_layer();
    for (size_t lane = 0; lane < errors.size(); ++lane) {
      const double squared = errors[lane].attention_squared;
      const double ratio = squared == 0 ? 0 : errors[lane].attention_squared_error / squared;
      lane_report(lane).layers.push_back(
          {cache_errors(errors[lane].k), cache_errors(errors[lane].v), std::sqrt(ratio)});
    }
  }

  // Lists the predictions. In the text, every position of a window except the last predicts the
  // next token. In a greedy probe, only the positions of the baseline's choices do.
  void list_predictions() {
    predictions_.resize(caches_->plan().batches.size());
    for (size_t b = 0; b < predictions_.size(); ++b) {
      const WindowBatch& batch = caches_->plan().batches[b];
      int64_t row = 0;
      for (size_t w = batch.first; w < batch.first + batch.count; ++w) {
        const std::vector<int32_t>& ids = windows_[w];
        const auto length = static_cast<int64_t>(ids.size());
        const bool probe = w >= n_windows_;
        const int64_t begin = probe ? probes_[w - n_windows_].first_decision : 0;
        const int64_t end = probe ? begin + probes_[w - n_windows_].decisions : length - 1;
        for (int64_t at = begin; at < end; ++at) {
          const int32_t next = at + 1 < length ? ids[static_cast<size_t>(at) + 1] : 0;
          predictions_[b].push_back({row + at, next, n_predictions_++});
          if (!probe) depths_.push_back(at + 1);
        }
        row += length;
      }
    }
    FP8KV_ASSERT(!depths_.empty());
    logs_.resize(caches_->streams().size());
    for (TokenLog& log : logs_) log.resize(n_predictions_);
    if (reference_) of_reference_.resize(n_predictions_);
  }

  // Computes all rows in the mode of a prompt step, however many there are. So no figure depends on
  // how predictions are divided.
  void head() {
    backend_.compute_as(kPromptStep);
    const HeadWeights weights = loader_.head();
    std::optional<HeadWeights> other;
    if (reference_) other.emplace(reference_->head());
    const int64_t chunk =
        std::clamp<int64_t>(kLogitBytes / (config_.vocab_size * kBytesPerLogit), 1, kMostLogitRows);
    const Tensor logits = backend_.allocate(DType::f32, Shape{chunk, config_.vocab_size});
    const Tensor rows = backend_.allocate(DType::i32, Shape{chunk});
    baselines_.resize(static_cast<size_t>(chunk));
    others_.resize(static_cast<size_t>(caches_->pool().threads()));
    for (size_t b = 0; b < predictions_.size(); ++b) {
      const std::span<const Prediction> all = predictions_[b];
      for (size_t at = 0; at < all.size(); at += static_cast<size_t>(chunk)) {
        const auto part = all.subspan(at, std::min(all.size() - at, static_cast<size_t>(chunk)));
        compare_rows(weights, other ? &*other : nullptr, caches_->plan().batches[b],
                     choose_rows(part, rows, logits));
        const auto steps_at = [&](size_t row) {
          return static_cast<uint64_t>(head_steps()) * row / all.size();
        };
        progress_->advance(steps_at(at + part.size()) - steps_at(at));
      }
    }
  }

  // The progress steps of a batch's logits: about half of what its layers take.
  int64_t head_steps() const { return (config_.n_layers() + 1) / 2; }

  // The predictions of one batch whose logits are computed together.
  struct Chunk {
    std::span<const Prediction> part;
    TensorView ids;     // [part.size()]
    TensorView logits;  // [part.size(), vocab_size]
  };

  Chunk choose_rows(std::span<const Prediction> part, const Tensor& rows, const Tensor& logits) {
    std::vector<int32_t> wanted;
    for (const Prediction& each : part) wanted.push_back(static_cast<int32_t>(each.row));
    const auto n = static_cast<int64_t>(part.size());
    const TensorView ids{rows.view().data, DType::i32, Shape{n}};
    backend_.copy_in(ids, host_view(wanted));
    return {part, ids, {logits.view().data, DType::f32, Shape{n, config_.vocab_size}}};
  }

  // Compares the baseline with one stream after another, so memory does not grow with the streams.
  void compare_rows(const HeadWeights& weights, const HeadWeights* other, const WindowBatch& batch,
                    const Chunk& chunk) {
    const auto stream_logits = [&](size_t s) {
      const TensorView x = caches_->rows_of(caches_->streams()[s], batch);
      caches_->forward().head(weights, x, chunk.ids, chunk.logits);
    };
    other ? reference_->logits(*other, batch, chunk.ids, chunk.logits) : stream_logits(0);
    TokenLog& log = other ? of_reference_ : logs_[0];
    for_rows(chunk, baseline_logits_, [&](size_t i, std::span<const float> logits, int) {
      const Prediction& each = chunk.part[i];
      baselines_[i].set(logits);
      log.nll[each.index] = baselines_[i].nll(each.target);
      log.kld[each.index] = 0;
      log.agree[each.index] = 1;
    });
    for (size_t s = other ? 0 : 1; s < logs_.size(); ++s) {
      stream_logits(s);
      compare_stream(chunk, logs_[s]);
    }
  }

  void compare_stream(const Chunk& chunk, TokenLog& log) {
    for_rows(chunk, logits_, [&](size_t i, std::span<const float> logits, int thread) {
      const Prediction& each = chunk.part[i];
      RowDistribution& row = others_[static_cast<size_t>(thread)];
      row.set(logits);
      log.nll[each.index] = row.nll(each.target);
      log.kld[each.index] = baselines_[i].divergence(row);
      log.agree[each.index] = row.best() == baselines_[i].best() ? 1 : 0;
    });
  }

  // Calls work(i, logits of row i, thread) for every row of the chunk.
  template <typename Work>
  void for_rows(const Chunk& chunk, std::vector<float>& host, const Work& work) {
    const auto width = static_cast<size_t>(config_.vocab_size);
    host.resize(chunk.part.size() * width);
    backend_.download(chunk.logits, std::as_writable_bytes(std::span(host)));
    caches_->pool().run(static_cast<int64_t>(chunk.part.size()), [&](int64_t job, int thread) {
      const auto i = static_cast<size_t>(job);
      work(i, std::span<const float>(host).subspan(i * width, width), thread);
    });
  }

  GreedyFigures greedy_figures(const TokenLog& log) const {
    GreedyFigures figures;
    size_t at = depths_.size();
    for (const GreedyProbe& probe : probes_) {
      const auto begin = log.agree.begin() + static_cast<ptrdiff_t>(at);
      const auto end = begin + probe.decisions;
      figures.agreed.push_back(std::find(begin, end, 0) - begin);
      figures.length.push_back(probe.decisions);
      at += static_cast<size_t>(probe.decisions);
    }
    return figures;
  }

  void fill_figures() {
    for (size_t s = 0; s < logs_.size(); ++s) {
      const GreedyFigures greedy = greedy_figures(logs_[s]);
      const FiguresByDepth figures =
          figures_by_depth(logs_[s], reference_ ? of_reference_ : logs_[0], depths_);
      for (const size_t lane : caches_->streams()[s].lanes) {
        CandidateReport& of_lane = lane_report(lane);
        of_lane.greedy = greedy;
        of_lane.total = figures.total;
        of_lane.parts = figures.parts;
        of_lane.depths = figures.buckets;
        of_lane.bytes_per_token = kv_bytes_per_token(config_, cache_of(of_lane, config_));
      }
    }
    if (!reference_) return;
    const FiguresByDepth own = figures_by_depth(of_reference_, of_reference_, depths_);
    report_.baseline.greedy = greedy_figures(of_reference_);
    report_.baseline.total = own.total;
    report_.baseline.parts = own.parts;
    report_.baseline.depths = own.buckets;
    report_.baseline.bytes_per_token = kv_bytes_per_token(config_, report_.baseline.dtype);
  }

  Backend& backend_;
  const ModelConfig& config_;
  EvalReport& report_;
  size_t n_windows_;                           // windows of the text; those of greedy probes follow
  std::vector<std::vector<int32_t>> windows_;  // of the text and of probes
  const Checkpoint& checkpoint_;
  WeightLoader loader_;
  std::vector<GreedyProbe> probes_;
  std::optional<MultiCacheRun> caches_;
  std::optional<ReferencePass> reference_;
  std::optional<Progress> progress_;
  size_t half_ = 0;  // batches in the first half of the windows

  std::vector<std::vector<Prediction>> predictions_;  // [batches]
  size_t n_predictions_ = 0;
  std::vector<int64_t> depths_;  // of the predictions in the text, which come first
  std::vector<TokenLog> logs_;   // [streams]
  TokenLog of_reference_;
  std::vector<float> baseline_logits_, logits_;  // of one chunk, on the host
  std::vector<RowDistribution> baselines_;       // [rows in a chunk]
  std::vector<RowDistribution> others_;          // [threads]
};

}  // namespace

ModelCache cache_of(const CandidateReport& candidate, const ModelConfig& config) {
  ModelCache cache = candidate.dtype;
  cache.left_in = config.dtype;
  cache.left = candidate.skipped;
  cache.arithmetic = candidate.arithmetic;
  return cache;
}

void evaluate(const ModelOnBackend& model, const std::vector<std::vector<int32_t>>& windows,
              const EvalOptions& options, EvalReport& report, Log& log) {
  if (&report.config != &model.config) report.config = model.config;
  report.baseline.dtype = options.baseline;
  if (options.against && options.against->config.vocab_size != report.config.vocab_size) {
    throw Error(cat(quote(options.against->checkpoint.folder().string()), ": has ",
                    options.against->config.vocab_size, " tokens, and ",
                    quote(model.checkpoint.folder().string()), " has ", report.config.vocab_size),
                "compare models with the same tokenizer");
  }
  for (const auto& window : windows) {
    report.longest_window = std::max(report.longest_window, static_cast<int64_t>(window.size()));
  }
  Evaluator(model, windows, options, report, log).run();
}

}  // namespace fp8kv
