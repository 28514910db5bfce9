#include "calib/collect.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "calib/drafts/draft_pass.h"
#include "calib/drafts/drafter_pass.h"
#include "calib/measure/scale_losses.h"
#include "calib/windows/memory_plan.h"
#include "calib/windows/residual.h"
#include "calib/windows/window_plan.h"
#include "calib/windows/workspace.h"
#include "checkpoint/drafts/drafter.h"
#include "core/numbers/host_view.h"
#include "data/dataset.h"
#include "model/embedding.h"
#include "model/weights/weights.h"

namespace fp8kv {
namespace {

// Downloads the counters of one layer, as RopeAppend fills them.
std::vector<uint64_t> download_words(Backend& backend, const ConstTensorView& magnitudes,
                                     int64_t layer) {
  std::vector<uint64_t> words(static_cast<size_t>(magnitudes.shape.elements()));
  with_context(cat("layer ", layer),
               [&] { backend.download(magnitudes, std::as_writable_bytes(std::span(words))); });
  return words;
}

class Collector {
 public:
  Collector(const ModelOnBackend& model, const std::vector<std::vector<int32_t>>& windows,
            const CollectOptions& options)
      : checkpoint_(model.checkpoint),
        config_(model.config),
        backend_(model.backend),
        windows_(windows),
        options_(options),
        activation_(backend_.activation_dtype(config_.dtype)),
        whole_(options.inputs != nullptr || options.losses || !options.drafts.empty() ||
               options.drafter != nullptr),
        n_layers_(layers_to_run()),
        plan_(plan_windows(windows, {options.parts.begin(), options.parts.end()},
                           options.batch_rows)),
        memory_(plan_memory(model, plan_, layers_from(0), bound())) {}

  CollectedMagnitudes run(Log& log) {
    if (options_.state) {
      if (auto found = options_.state->find(config_, plan_.total_rows, activation_)) {
        found_ = std::move(*found);
        log.note(cat("going on from ", quote(options_.state->path().string()), ": ",
                     found_.layers.size(), " of ",
                     count_of(static_cast<uint64_t>(n_layers_), "layer"), " done"));
      }
    }
    const int64_t done = std::ssize(found_.layers);
    for (size_t part = 0; part < kTextParts; ++part) {
      found_.parts[part].tokens = tokens_in(std::span(windows_).first(options_.parts[part]));
    }
    say_plan(log);
    ResidualStream residual = with_context("activations", [&] {
      return ResidualStream(backend_, plan_, config_.stream_dim(), activation_, memory_.resident);
    });
    if (options_.drafter) {
      hidden_.emplace(hidden_layers_of(options_.drafter->config, config_), plan_, config_.dim,
                      activation_);
    }
    const auto left = static_cast<uint64_t>(n_layers_ - done) + options_.drafts.size() +
                      (options_.drafter ? 1 : 0);
    Progress progress(log, "calibrating", left * plan_.batches.size());
    run_layers(done, residual, progress);
    for (const DraftModel& draft : options_.drafts) {
      found_.drafts.push_back(
          collect_draft({checkpoint_, config_, backend_, windows_, plan_, residual}, draft,
                        progress)
              .value_or(LayerMagnitudes()));
      checkpoint_.check_unchanged();
    }
    if (options_.drafter) return of_drafter(residual, progress);
    fill_up();
    return std::move(found_);
  }

 private:
  void run_layers(int64_t done, ResidualStream& residual, Progress& progress) {
    Workspace workspace = with_context(
        "working memory", [&] { return Workspace(backend_, config_, plan_, n_layers_); });
    StreamOptions stream_options = options_.stream;
    stream_options.buffers = memory_.layer_buffers;
    std::optional<ScaleLosses> losses;
    if (options_.losses) {
      losses.emplace(backend_, config_, plan_);
      workspace.forward.show_projected([&](const AttentionInputs& inputs) {
        if (inputs.k.shape[1] > 0) losses->measure(workspace.forward, inputs, lengths_);
      });
    }
    WeightStream weights(checkpoint_, config_, backend_, layers_from(done), stream_options);
    Embedding embedding(checkpoint_, config_, backend_, EmbeddingTable::in_file);
    if (done > 0) {
      options_.state->restore(residual);
    } else {
      embed(workspace, embedding, residual);
    }
    for (int64_t index = done; index < n_layers_; ++index) {
      layer(index, workspace, embedding, residual, weights, losses, progress);
    }
  }

  int64_t layers_to_run() const {
    if (options_.drafter) return hidden_layers_of(options_.drafter->config, config_).back();
    return whole_ ? config_.n_layers() : config_.layers_to_last_cache();
  }

  // Runs the drafter over all windows. Its amax after each part of the text is in the result.
  CollectedMagnitudes of_drafter(ResidualStream& residual, Progress& progress) {
    CollectedMagnitudes found;
    for (size_t part = 0; part < kTextParts; ++part) {
      found.parts[part].tokens = found_.parts[part].tokens;
    }
    for (size_t i = 0; i < plan_.batches.size(); ++i) {
      const TensorView rows = residual.begin(i);
      if (hidden_->wants(n_layers_)) hidden_->keep(backend_, n_layers_, plan_.batches[i], rows);
      residual.end();
    }
    const auto note = [&](const WindowBatch& batch, const TensorView& magnitudes) {
      for (size_t part = 0; part < kTextParts; ++part) {
        if (options_.parts[part] != batch.first + batch.count) continue;
        found.parts[part].layers = {download_amax(backend_, magnitudes)};
      }
    };
    found.layers = {collect_drafter(
        {*options_.drafter, checkpoint_, config_, backend_, windows_, plan_, *hidden_}, progress,
        note)};
    options_.drafter->checkpoint.check_unchanged();
    return found;
  }

  // Adds empty entries for the layers that were not run.
  void fill_up() {
    const auto all = static_cast<size_t>(config_.n_layers());
    found_.layers.resize(all);
    for (AmaxAfter& part : found_.parts) {
      if (part.tokens > 0) part.layers.resize(all);
    }
    if (config_.experts) found_.reached.resize(all, none_reached());
  }

  MemoryBound bound() const {
    MemoryBound bound = options_.max_memory;
    if (!options_.drafts.empty()) bound.beside += draft_bytes(config_, backend_, plan_);
    if (options_.losses) bound.beside += loss_bytes(config_, backend_, plan_);
    if (options_.drafter) bound.beside += drafter_bytes(options_.drafter->config, backend_, plan_);
    return bound;
  }

  std::vector<uint64_t> none_reached() const {
    return std::vector<uint64_t>(static_cast<size_t>(config_.experts->choices()));
  }

  // The last layer to run stops after K and V: no cache depends on the rest of it.
  LayerPart part_of(int64_t index) const {
    return index + 1 == n_layers_ && !whole_ ? LayerPart::up_to_kv : LayerPart::whole;
  }

  std::vector<StreamedLayer> layers_from(int64_t first) const {
    std::vector<StreamedLayer> layers;
    for (int64_t index = first; index < n_layers_; ++index) {
      layers.push_back({index, part_of(index)});
    }
    return layers;
  }

  void say_plan(Log& log) const {
    if (!backend_.memory()) return;
    log.detail(cat("device memory: ", human_bytes(memory_.bytes), ", with ",
                   count_of(static_cast<uint64_t>(memory_.layer_buffers), "layer"),
                   " at a time and the residual stream ",
                   memory_.resident
                       ? std::string("on the device")
                       : cat("in ", human_bytes(memory_.host_bytes), " of host memory")));
  }

  void embed(Workspace& workspace, Embedding& embedding, ResidualStream& residual) {
    for (size_t i = 0; i < plan_.batches.size(); ++i) {
      check_interrupt();
      workspace.rows.begin(windows_, plan_.batches[i]);
      embedding.embed(workspace.rows.step, residual.begin(i));
      residual.end();
    }
  }

  void layer(int64_t index, Workspace& workspace, Embedding& embedding, ResidualStream& residual,
             WeightStream& weights, std::optional<ScaleLosses>& losses, Progress& progress) {
    const bool whole = part_of(index) == LayerPart::whole;
    const LayerWeights& of_layer = weights.begin();
    const std::optional<TensorView> magnitudes = workspace.magnitudes_of(config_, index);
    with_context(cat("layer ", index), [&] {
      if (losses && magnitudes) losses->begin_layer(index, of_layer);
      if (magnitudes) clear(*magnitudes);
      if (config_.experts) clear(workspace.reached.view());
      for (size_t i = 0; i < plan_.batches.size(); ++i) {
        begin_batch(workspace, plan_.batches[i]);
        const WindowBatch& batch = plan_.batches[i];
        const Step& step = workspace.rows.step;
        LayerStep now{step.batch(), workspace.rows.cache.layer(index), part_of(index), magnitudes};
        if (whole) now.input = embedding.layer_input(step, index);
        now.choice = {workspace.rows.cache.index_keys(index),
                      workspace.chosen.rows(batch.first_row, batch.rows)};
        const TensorView rows = residual.begin(i);
        if (hidden_ && hidden_->wants(index)) hidden_->keep(backend_, index, batch, rows);
        workspace.forward.layer(index, of_layer, rows, now);
        residual.end();
        progress.advance();
        note_parts(batch.first + batch.count, magnitudes);
      }
    });
    std::vector<uint64_t> words;
    if (magnitudes) words = download_words(backend_, *magnitudes, index);
    leave_out_unpooled(index, words);
    checkpoint_.check_unchanged();
    found_.layers.push_back(magnitudes_from(words, heads_of(index), index));
    if (losses && magnitudes) losses->end_layer(found_.layers.back());
    if (options_.inputs) {
      options_.inputs->end_layer(index, of_layer, latent_amax(found_.layers.back()));
    }
    if (options_.keys) options_.keys->end_layer(index);
    weights.end();
    if (config_.experts) {
      found_.reached.push_back(download_words(backend_, workspace.reached.view(), index));
    }
    if (options_.state && index + 1 < n_layers_) {
      options_.state->save(found_, config_, plan_.total_rows, activation_, residual);
    }
  }

  void begin_batch(Workspace& workspace, const WindowBatch& batch) {
    workspace.rows.begin(windows_, batch);
    lengths_.clear();
    for (size_t i = 0; i < batch.count; ++i) {
      lengths_.push_back(std::ssize(windows_[batch.first + i]));
    }
  }

  // Notes the amax of each text part that ends after `windows` windows.
  void note_parts(size_t windows, const std::optional<TensorView>& magnitudes) {
    for (size_t part = 0; part < kTextParts; ++part) {
      if (options_.parts[part] != windows) continue;
      found_.parts[part].layers.push_back(magnitudes ? download_amax(backend_, *magnitudes)
                                                     : LayerAmax());
    }
  }

  // Takes the zeros out of the count of V, which it has for tokens that end no pool.
  void leave_out_unpooled(int64_t index, std::vector<uint64_t>& words) const {
    const LayerDescription& layer = config_.layer(index);
    if (layer.pool == 0 || words.empty()) return;
    int64_t zeros = 0;
    for (const std::vector<int32_t>& window : windows_) {
      zeros += (std::ssize(window) - std::ssize(window) / layer.pool) * layer.v_head_dim;
    }
    const auto v = static_cast<size_t>(2 * layer.n_kv_heads * kMagnitudeWords);
    words[v + kMagnitudeFirstBin] -= static_cast<uint64_t>(zeros);
  }

  void clear(const TensorView& counters) {
    const std::vector<uint64_t> zeros(static_cast<size_t>(counters.shape.elements()));
    backend_.copy_in(counters, host_view(zeros, counters.shape));
  }

  // In latent attention, V is the latent. Layers that keep a state have none.
  std::optional<float> latent_amax(const LayerMagnitudes& layer) const {
    if (!config_.latent || layer.v.empty()) return std::nullopt;
    return layer.v.front().amax;
  }

  // The number of KV heads whose magnitudes are counted; 0 if the layer writes no cache.
  int64_t heads_of(int64_t index) const {
    return config_.writes_cache(index) ? config_.layer(index).n_kv_heads : 0;
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  Backend& backend_;
  const std::vector<std::vector<int32_t>>& windows_;
  const CollectOptions& options_;
  const DType activation_;
  const bool whole_;        // the output of the last layer is needed too
  const int64_t n_layers_;  // layers to run
  const WindowPlan plan_;
  const MemoryPlan memory_;
  std::vector<int64_t> lengths_;  // of the batch's windows
  CollectedMagnitudes found_;
  std::optional<HiddenStates> hidden_;  // with a drafter
};

}  // namespace

LayerAmax download_amax(Backend& backend, const ConstTensorView& magnitudes) {
  std::vector<uint64_t> words(static_cast<size_t>(magnitudes.shape.elements()));
  backend.download(magnitudes, std::as_writable_bytes(std::span(words)));
  LayerAmax amax;
  const uint64_t* next = words.data();
  for (std::vector<float>* heads : {&amax.q, &amax.k, &amax.v}) {
    for (int64_t head = 0; head < magnitudes.shape[1]; ++head, next += kMagnitudeWords) {
      heads->push_back(float_from_bits(static_cast<uint32_t>(next[kMagnitudeAmax])));
    }
  }
  return amax;
}

LayerMagnitudes download_magnitudes(Backend& backend, const ConstTensorView& magnitudes,
                                    int64_t layer) {
  return magnitudes_from(download_words(backend, magnitudes, layer), magnitudes.shape[1], layer);
}

std::vector<LayerMagnitudes> collect_magnitudes(const ModelOnBackend& model,
                                                const std::vector<std::vector<int32_t>>& windows,
                                                Log& log, const CollectOptions& options) {
  return collect(model, windows, log, options).layers;
}

CollectedMagnitudes collect(const ModelOnBackend& model,
                            const std::vector<std::vector<int32_t>>& windows, Log& log,
                            const CollectOptions& options) {
  FP8KV_ASSERT(!windows.empty() && options.parts.back() <= windows.size());
  if (options.losses) check_losses_measurable(model.config);
  return with_unchanged(model.checkpoint,
                        [&] { return Collector(model, windows, options).run(log); });
}

}  // namespace fp8kv
