#include "support/reference_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "core/half.h"

namespace fp8kv::test {
namespace {

using Vector = std::vector<double>;
using Rows = std::vector<Vector>;

Vector values_of(const Checkpoint& checkpoint, const std::string& name) {
  const MappedTensor mapped = checkpoint.map(name);
  Vector values(static_cast<size_t>(mapped.view.shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const std::byte* at = mapped.view.data + i * dtype_bytes(mapped.view.dtype);
    uint16_t half = 0;
    float single = 0;
    switch (mapped.view.dtype) {
      case DType::f32:
        std::memcpy(&single, at, sizeof single);
        break;
      case DType::bf16:
        std::memcpy(&half, at, sizeof half);
        single = bf16_to_float(half);
        break;
      default:
        std::memcpy(&half, at, sizeof half);
        single = f16_to_float(half);
    }
    values[i] = single;
  }
  return values;
}

Vector product(const Vector& weight, const Vector& bias, const Vector& x) {
  Vector y(weight.size() / x.size());
  for (size_t row = 0; row < y.size(); ++row) {
    double sum = bias.empty() ? 0 : bias[row];
    for (size_t i = 0; i < x.size(); ++i) sum += weight[row * x.size() + i] * x[i];
    y[row] = sum;
  }
  return y;
}

struct Layer {
  const Checkpoint& checkpoint;
  int64_t index;

  Vector tensor(const std::string& name) const {
    const std::string full = cat("model.layers.", index, ".", name);
    return checkpoint.find(full) ? values_of(checkpoint, full) : Vector();
  }
  Rows project(const std::string& name, const Rows& x) const {
    const Vector weight = tensor(name + ".weight"), bias = tensor(name + ".bias");
    Rows y;
    for (const Vector& row : x) y.push_back(product(weight, bias, row));
    return y;
  }
};

Rows normed(const Rows& x, const Vector& weight, double eps) {
  Rows y = x;
  for (Vector& row : y) {
    double squares = 0;
    for (const double value : row) squares += value * value;
    const double factor = 1 / std::sqrt(squares / static_cast<double>(row.size()) + eps);
    for (size_t i = 0; i < row.size(); ++i) row[i] *= factor * weight[i];
  }
  return y;
}

// Every head of every row on its own; nothing where there are no weights for that.
Rows heads_normed(const Rows& x, const Vector& weight, double eps) {
  if (weight.empty()) return x;
  Rows y = x;
  for (Vector& row : y) {
    for (auto head = row.begin(); head != row.end(); head += std::ssize(weight)) {
      const Rows one = normed({Vector(head, head + std::ssize(weight))}, weight, eps);
      std::copy(one[0].begin(), one[0].end(), head);
    }
  }
  return y;
}

double frequency(const RopeConfig& rope, double pair, double head_dim) {
  const double plain = 1 / std::pow(rope.theta, 2 * pair / head_dim);
  if (rope.scaling == RopeScaling::linear) return plain / rope.factor;
  if (rope.scaling == RopeScaling::none) return plain;
  if (rope.scaling == RopeScaling::yarn) {
    const auto pair_at = [&](double turns) {  // that many in the original context
      return head_dim / 2 * std::log(rope.original_context / turns / (2 * M_PI)) /
             std::log(rope.theta);
    };
    const double from = std::max(std::floor(pair_at(rope.beta_fast)), 0.0);
    const double to = std::min(std::ceil(pair_at(rope.beta_slow)), head_dim - 1);
    const double share = std::min(std::max((pair - from) / (to - from), 0.0), 1.0);
    return plain * (1 - share * (1 - 1 / rope.factor));
  }
  const double turns = rope.original_context * plain / (2 * M_PI);  // within the original context
  if (turns < rope.low_freq_factor) return plain / rope.factor;
  if (turns > rope.high_freq_factor) return plain;
  const double share =
      (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return plain * (share + (1 - share) / rope.factor);
}

void rotate(Rows& rows, const ModelConfig& config) {
  const auto size = static_cast<size_t>(config.head_dim()), half = size / 2;
  for (size_t position = 0; position < rows.size(); ++position) {
    for (size_t at = 0; at < rows[position].size(); at += size) {
      for (size_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(position) *
            frequency(config.ropes[0], static_cast<double>(i), static_cast<double>(size));
        double& a = rows[position][at + i];
        double& b = rows[position][at + i + half];
        const double rotated = a * std::cos(angle) - b * std::sin(angle);
        b = (b * std::cos(angle) + a * std::sin(angle)) * config.ropes[0].attention_factor;
        a = rotated * config.ropes[0].attention_factor;
      }
    }
  }
}

// Rounds to the model's dtype, as every runtime does before it caches.
double to_model_dtype(double value, DType dtype) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::f16) return f16_to_float(f16_from_float(single));
  if (dtype == DType::bf16) return bf16_to_float(bf16_from_float(single));
  return value;
}

Vector amax_per_kv_head(const Rows& rows, const ModelConfig& config) {
  const auto heads = rows[0].size() / static_cast<size_t>(config.head_dim());
  const size_t share = heads / static_cast<size_t>(config.n_kv_heads());
  Vector amax(static_cast<size_t>(config.n_kv_heads()), 0.0);
  for (const Vector& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      double& most = amax[i / static_cast<size_t>(config.head_dim()) / share];
      most = std::max(most, std::abs(row[i]));
    }
  }
  return amax;
}

Vector attend(const Rows& q, const Rows& k, const Rows& v, size_t position, int64_t window,
              const ModelConfig& config) {
  const auto size = static_cast<size_t>(config.head_dim());
  const auto heads = static_cast<size_t>(config.n_heads);
  const size_t share = heads / static_cast<size_t>(config.n_kv_heads());
  const size_t first = window > 0 && position + 1 > static_cast<size_t>(window)
                           ? position + 1 - static_cast<size_t>(window)
                           : 0;
  Vector out(heads * size, 0.0);
  for (size_t head = 0; head < heads; ++head) {
    const size_t kv = head / share;
    Vector weight;
    for (size_t j = first; j <= position; ++j) {
      double dot = 0;
      for (size_t i = 0; i < size; ++i) dot += q[position][head * size + i] * k[j][kv * size + i];
      weight.push_back(dot / std::sqrt(static_cast<double>(size)));
    }
    const double most = *std::max_element(weight.begin(), weight.end());
    double sum = 0;
    for (double& w : weight) sum += w = std::exp(w - most);
    for (size_t j = first; j <= position; ++j) {
      for (size_t i = 0; i < size; ++i) {
        out[head * size + i] += weight[j - first] / sum * v[j][kv * size + i];
      }
    }
  }
  return out;
}

void add_to(Rows& x, const Rows& y) {
  for (size_t row = 0; row < x.size(); ++row) {
    for (size_t i = 0; i < x[row].size(); ++i) x[row][i] += y[row][i];
  }
}

void round_rows(Rows& rows, const ModelConfig& config, const CacheRounding& rounding, int64_t layer,
                bool is_key) {
  for (Vector& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = rounding(row[i], layer, static_cast<int64_t>(i) / config.head_dim(), is_key);
    }
  }
}

void add_squares(const Rows& exact, const Rows& lossy, double& error, double& all) {
  for (size_t row = 0; row < exact.size(); ++row) {
    for (size_t i = 0; i < exact[row].size(); ++i) {
      error += std::pow(lossy[row][i] - exact[row][i], 2);
      all += std::pow(exact[row][i], 2);
    }
  }
}

Rows attend_all(const Rows& q, const Rows& k, const Rows& v, int64_t window,
                const ModelConfig& config) {
  Rows attended;
  for (size_t position = 0; position < q.size(); ++position) {
    attended.push_back(attend(q, k, v, position, window, config));
  }
  return attended;
}

ReferenceErrors measure(const Rows& q, const Rows& k, const Rows& v, const Rows& attended,
                        int64_t layer, const CacheRounding& rounding, const ModelConfig& config) {
  Rows lossy_k = k, lossy_v = v;
  round_rows(lossy_k, config, rounding, layer, true);
  round_rows(lossy_v, config, rounding, layer, false);
  ReferenceErrors errors;
  add_squares(k, lossy_k, errors.k_error, errors.k);
  add_squares(v, lossy_v, errors.v_error, errors.v);
  add_squares(attended, attend_all(q, lossy_k, lossy_v, config.window(layer), config),
              errors.attention_error, errors.attention);
  return errors;
}

}  // namespace

ReferenceRun reference_forward(const Checkpoint& checkpoint, const ModelConfig& config,
                               const std::vector<int32_t>& ids, const CacheRounding& rounding,
                               const CacheRounding& measured) {
  const bool own_embedding = checkpoint.find("model.embed_tokens.weight") != nullptr;
  const Vector embedding =
      values_of(checkpoint, own_embedding ? "model.embed_tokens.weight" : "lm_head.weight");
  const auto dim = static_cast<std::ptrdiff_t>(config.dim);
  Rows x;
  for (const int32_t id : ids) {
    x.emplace_back(embedding.begin() + id * dim, embedding.begin() + (id + 1) * dim);
  }
  ReferenceRun run;
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const Layer layer{checkpoint, index};
    const Rows y = normed(x, layer.tensor("input_layernorm.weight"), config.norm_eps);
    Rows q = layer.project("self_attn.q_proj", y);
    Rows k = layer.project("self_attn.k_proj", y);
    Rows v = layer.project("self_attn.v_proj", y);
    q = heads_normed(q, layer.tensor("self_attn.q_norm.weight"), config.norm_eps);
    k = heads_normed(k, layer.tensor("self_attn.k_norm.weight"), config.norm_eps);
    rotate(q, config);
    rotate(k, config);
    for (Rows* rows : {&q, &k, &v}) {
      for (Vector& row : *rows) {
        for (double& value : row) value = to_model_dtype(value, config.dtype);
      }
    }
    run.q_amax.push_back(amax_per_kv_head(q, config));
    run.k_amax.push_back(amax_per_kv_head(k, config));
    run.v_amax.push_back(amax_per_kv_head(v, config));
    if (rounding) {
      round_rows(k, config, rounding, index, true);
      round_rows(v, config, rounding, index, false);
    }
    const Rows attended = attend_all(q, k, v, config.window(index), config);
    if (measured) run.errors.push_back(measure(q, k, v, attended, index, measured, config));
    add_to(x, layer.project("self_attn.o_proj", attended));
    const Rows z = normed(x, layer.tensor("post_attention_layernorm.weight"), config.norm_eps);
    Rows gate = layer.project("mlp.gate_proj", z);
    const Rows up = layer.project("mlp.up_proj", z);
    for (size_t row = 0; row < gate.size(); ++row) {
      for (size_t i = 0; i < gate[row].size(); ++i) {
        gate[row][i] = gate[row][i] / (1 + std::exp(-gate[row][i])) * up[row][i];
      }
    }
    add_to(x, layer.project("mlp.down_proj", gate));
  }
  const bool own_head = checkpoint.find("lm_head.weight") != nullptr && !config.tied_embeddings;
  const Vector head = own_head ? values_of(checkpoint, "lm_head.weight") : embedding;
  for (const Vector& row : normed(x, values_of(checkpoint, "model.norm.weight"), config.norm_eps)) {
    run.logits.push_back(product(head, {}, row));
  }
  return run;
}

std::vector<int32_t> reference_greedy(const Checkpoint& checkpoint, const ModelConfig& config,
                                      std::vector<int32_t> prompt, int count,
                                      const CacheRounding& rounding) {
  std::vector<int32_t> made;
  for (int i = 0; i < count; ++i) {
    const ReferenceRun run = reference_forward(checkpoint, config, prompt, rounding);
    const std::vector<double>& last = run.logits.back();
    const auto best = std::max_element(last.begin(), last.end()) - last.begin();
    prompt.push_back(static_cast<int32_t>(best));
    made.push_back(static_cast<int32_t>(best));
  }
  return made;
}

}  // namespace fp8kv::test
