#include "support/models/run_model.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "generate/generate.h"
#include "model/embedding.h"
#include "model/model.h"
#include "model/parts/sparse/chosen_tokens.h"
#include "model/step.h"
#include "model/weights/weight_loader.h"

namespace fp8kv::test {

std::vector<std::vector<float>> run_model(const Checkpoint& checkpoint, const ModelConfig& config,
                                          Backend& backend, const std::vector<int32_t>& ids,
                                          const RunSettings& settings) {
  const auto n = static_cast<int64_t>(ids.size());
  const int64_t pages = KvCache::pages_for(n);
  KvCache cache(backend, config, {settings.cache_dtype, pages}, settings.scales);
  const WeightLoader loader(checkpoint, config, backend);
  Embedding embedding(checkpoint, config, backend, EmbeddingTable::on_backend);
  const HeadWeights head = loader.head();
  Forward forward(backend, config, n, n);
  const LayerStates states(backend, config, 1);
  const ChosenTokens choice(backend, config, {n, n, n});
  Step step(backend, n, 1, pages);
  const Tensor x = backend.allocate(forward.activation_dtype(), Shape{n, config.stream_dim()});
  const Tensor logits = backend.allocate(DType::f32, Shape{n, config.vocab_size});
  std::vector<int32_t> all_rows(ids.size());
  std::iota(all_rows.begin(), all_rows.end(), 0);
  const Tensor rows = backend.allocate(DType::i32, Shape{n});
  backend.copy_in(rows.view(),
                  {reinterpret_cast<const std::byte*>(all_rows.data()), DType::i32, Shape{n}});

  KvCache::Sequence sequence;
  std::vector<std::vector<float>> out;
  for (size_t at = 0; at < ids.size();) {
    const bool first = at == 0 && settings.prompt > 0;
    const size_t count =
        std::min(ids.size() - at, static_cast<size_t>(first ? settings.prompt : settings.chunk));
    cache.extend(sequence, static_cast<int64_t>(count));
    step.clear();
    step.add(std::span(ids).subspan(at, count), sequence, true, 0, std::span(ids).first(at));
    step.upload();
    const TensorView part = x.first(step.rows());
    embedding.embed(step, part);
    for (int64_t i = 0; i < config.n_layers(); ++i) {
      forward.layer(i, loader.layer(i), part,
                    {.batch = step.batch(),
                     .kv = cache.layer(i),
                     .state = states.layer(i),
                     .input = embedding.layer_input(step, i),
                     .choice = {cache.index_keys(i), choice.rows(0, step.rows())}});
    }
    const TensorView chosen = logits.first(step.rows());
    forward.head(head, part, rows.first(step.rows()), chosen);
    std::vector<float> values(static_cast<size_t>(chosen.shape.elements()));
    backend.download(chosen, std::as_writable_bytes(std::span(values)));
    for (size_t i = 0; i < count; ++i) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i) * config.vocab_size;
      out.emplace_back(begin, begin + config.vocab_size);
    }
    at += count;
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
