#include "support/models/run_model.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "core/numbers/host_view.h"
#include "generate/generate.h"

namespace fp8kv::test {

SteppedRun::SteppedRun(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
                       const std::vector<int32_t>& ids, const RunSettings& settings)
    : config_(config),
      ids_(ids),
      n_(std::ssize(ids)),
      cache_(backend, config, {settings.cache_dtype, KvCache::pages_for(n_)}, settings.scales),
      loader_(checkpoint, config, backend),
      embedding_(checkpoint, config, backend, EmbeddingTable::on_backend),
      forward_(backend, config, n_, n_),
      states_(backend, config, 1),
      choice_(backend, config, {n_, n_, n_}),
      step_(backend, n_, 1, KvCache::pages_for(n_), config.block.differential),
      x_(backend.allocate(forward_.activation_dtype(), Shape{n_, config.stream_dim()})) {}

TensorView SteppedRun::step(size_t count, StepSize computed_as) {
  cache_.extend(sequence_, static_cast<int64_t>(count));
  step_.clear(computed_as);
  step_.add(std::span(ids_).subspan(done_, count), sequence_, true, 0,
            std::span(ids_).first(done_));
  step_.upload();
  const TensorView rows = x_.first(step_.rows());
  embedding_.embed(step_, rows);
  for (int64_t i = 0; i < config_.n_layers(); ++i) {
    forward_.layer(i, loader_.layer(i), rows,
                   {.batch = step_.batch(),
                    .kv = cache_.layer(i),
                    .state = states_.layer(i),
                    .input = embedding_.layer_input(step_, i),
                    .choice = {cache_.index_keys(i), choice_.rows(0, step_.rows())}});
  }
  done_ += count;
  return rows;
}

std::vector<std::vector<float>> run_model(const Checkpoint& checkpoint, const ModelConfig& config,
                                          Backend& backend, const std::vector<int32_t>& ids,
                                          const RunSettings& settings) {
  const auto n = static_cast<int64_t>(ids.size());
  SteppedRun run(checkpoint, config, backend, ids, settings);
  const WeightLoader loader(checkpoint, config, backend);
  const HeadWeights head = loader.head();
  const Tensor logits = backend.allocate(DType::f32, Shape{n, config.vocab_size});
  std::vector<int32_t> all_rows(ids.size());
  std::iota(all_rows.begin(), all_rows.end(), 0);
  const Tensor rows = backend.allocate(DType::i32, Shape{n});
  backend.copy_in(rows.view(), host_view(all_rows));

  std::vector<std::vector<float>> out;
  while (run.done() < ids.size()) {
    const bool first = run.done() == 0 && settings.prompt > 0;
    const size_t count = std::min(ids.size() - run.done(),
                                  static_cast<size_t>(first ? settings.prompt : settings.chunk));
    const TensorView part = run.step(count, {});
    const TensorView chosen = logits.first(part.shape[0]);
    run.forward().head(head, part, rows.first(part.shape[0]), chosen);
    std::vector<float> values(static_cast<size_t>(chosen.shape.elements()));
    backend.download(chosen, std::as_writable_bytes(std::span(values)));
    for (size_t i = 0; i < count; ++i) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i) * config.vocab_size;
      out.emplace_back(begin, begin + config.vocab_size);
    }
  }
  return out;
}

std::vector<int32_t> run_greedy(const ModelOnBackend& model, const std::vector<int32_t>& prompt,
                                int count, const RunSettings& settings) {
  const auto& [checkpoint, config, backend] = model;
  const std::vector<Request> requests = {{prompt, count}};
  const GenerationOptions options;
  const int64_t pages = pages_needed(requests, options, config.max_seq_len);
  std::vector<int32_t> made;
  generate(checkpoint, config, backend,
           {{settings.cache_dtype, pages},
            settings.scales,
            requests,
            options,
            {[&](size_t, int32_t id) { made.push_back(id); }, [](size_t, FinishReason) {}}});
  return made;
}

}  // namespace fp8kv::test
