#include "backend/cpu/cpu_sample.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/error.h"
#include "core/numbers/sampling.h"

namespace fp8kv {
namespace {

struct Choice {
  int32_t id;
  uint32_t key;
  uint64_t weight;
};

// The likelier choice comes first; among equals, the lower id.
bool comes_before(const Choice& a, const Choice& b) {
  return a.key != b.key ? a.key > b.key : a.id < b.id;
}

uint64_t total_of(const std::vector<Choice>& choices) {
  uint64_t total = 0;
  for (const Choice& choice : choices) total += choice.weight;
  return total;
}

// Returns the likeliest choices that reach `share`. A heap gives them one by one: few are needed,
// so sorting all would be a waste.
std::vector<Choice> likeliest(std::vector<Choice> choices, uint64_t share) {
  const auto later = [](const Choice& a, const Choice& b) { return comes_before(b, a); };
  std::make_heap(choices.begin(), choices.end(), later);
  std::vector<Choice> kept;
  for (uint64_t sum = 0; sum < share; sum += kept.back().weight) {
    std::pop_heap(choices.begin(), choices.end(), later);
    kept.push_back(choices.back());
    choices.pop_back();
  }
  return kept;
}

struct Row {
  std::span<const float> logits;
  float temperature;
  int32_t top_k;
  float top_p;
  uint64_t random;
};

int32_t draw(const Row& row, float max) {
  std::vector<Choice> choices(row.logits.size());
  for (size_t i = 0; i < choices.size(); ++i) {
    choices[i] = {static_cast<int32_t>(i), sampling_key(row.logits[i]),
                  sampling_weight(row.logits[i], max, row.temperature)};
  }
  if (row.top_k > 0 && static_cast<size_t>(row.top_k) < choices.size()) {
    std::nth_element(choices.begin(), choices.begin() + row.top_k, choices.end(), comes_before);
    choices.resize(static_cast<size_t>(row.top_k));
  }
  if (row.top_p < 1) {
    const uint64_t share = sampling_share(row.top_p, total_of(choices));
    choices = likeliest(std::move(choices), share);
  }
  std::sort(choices.begin(), choices.end(),
            [](const Choice& a, const Choice& b) { return a.id < b.id; });
  uint64_t left = sampling_below(row.random, total_of(choices));
  for (const Choice& choice : choices) {
    if (left < choice.weight) return choice.id;
    left -= choice.weight;
  }
  FP8KV_ASSERT(false);  // the draw is below the total
}

int32_t pick(const Row& row) {
  size_t largest = 0;
  for (size_t i = 0; i < row.logits.size(); ++i) {
    if (std::isnan(row.logits[i])) return -1 - static_cast<int32_t>(i);
    if (row.logits[i] > row.logits[largest]) largest = i;
  }
  return row.temperature == 0 ? static_cast<int32_t>(largest) : draw(row, row.logits[largest]);
}

}  // namespace

void cpu_sample(ThreadPool& pool, const ConstTensorView& logits, const Sampling& sampling,
                const TensorView& ids) {
  const int64_t vocab_size = logits.shape[1];
  FP8KV_ASSERT(vocab_size > 0 && vocab_size <= kMaxSampledTokens);
  pool.run(logits.shape[0], [&](int64_t i, int /*thread*/) {
    const auto position = static_cast<uint32_t>(sampling.position.as<int32_t>()[i]);
    ids.as<int32_t>()[i] =
        pick({{logits.as<float>() + i * vocab_size, static_cast<size_t>(vocab_size)},
              sampling.temperature.as<float>()[i],
              sampling.top_k.as<int32_t>()[i],
              sampling.top_p.as<float>()[i],
              sampling_random(sampling.seed.as<uint64_t>()[i], position)});
  });
}

}  // namespace fp8kv
