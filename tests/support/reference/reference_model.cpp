#include "support/reference/reference_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "core/numbers/half.h"
#include "support/models/tiny_checkpoint.h"
#include "support/reference/reference_attention.h"
#include "support/reference/reference_formulas.h"

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

Rows normed(const Rows& x, const Vector& weight, const Vector& bias, const ModelConfig& config) {
  Rows y = x;
  for (Vector& row : y) {
    const auto size = static_cast<double>(row.size());
    double mean = 0, squares = 0;
    if (config.block.norm == NormKind::layer) {
      for (const double value : row) mean += value / size;
    }
    for (const double value : row) squares += (value - mean) * (value - mean);
    const double deviation = std::sqrt(squares / size + config.norm_eps);
    for (size_t i = 0; i < row.size(); ++i) {
      const double factor = weight[i] + (config.block.norm_plus_one ? 1 : 0);
      row[i] = (row[i] - mean) / deviation * factor + (bias.empty() ? 0 : bias[i]);
    }
  }
  return y;
}

// Norms each row in parts of as many elements as there are weights: one head, or all heads. Returns
// x unchanged if there are no weights.
Rows heads_normed(const Rows& x, const Vector& weight, const ModelConfig& config) {
  if (weight.empty()) return x;
  Rows y = x;
  for (Vector& row : y) {
    for (auto head = row.begin(); head != row.end(); head += std::ssize(weight)) {
      const Rows one = normed({Vector(head, head + std::ssize(weight))}, weight, {}, config);
      std::copy(one[0].begin(), one[0].end(), head);
    }
  }
  return y;
}

void rotate(Rows& rows, const ModelConfig& config, int64_t layer) {
  const int32_t index = config.layer_ropes[static_cast<size_t>(layer)];
  if (index < 0) return;
  const RopeConfig& rope = config.ropes[static_cast<size_t>(index)];
  const auto size = static_cast<size_t>(config.head_dim());
  const size_t turned = rope.rotary_dim == 0 ? size : static_cast<size_t>(rope.rotary_dim);
  const bool neighbours = rope.pairs == RopePairs::neighbours;
  for (size_t position = 0; position < rows.size(); ++position) {
    for (size_t at = 0; at < rows[position].size(); at += size) {
      for (size_t i = 0; i < turned / 2; ++i) {
        const double angle = static_cast<double>(position) *
                             frequency(rope, static_cast<double>(i), static_cast<double>(turned));
        double& a = rows[position][at + (neighbours ? 2 * i : i)];
        double& b = rows[position][at + (neighbours ? 2 * i + 1 : i + turned / 2)];
        const double rotated = a * std::cos(angle) - b * std::sin(angle);
        b = (b * std::cos(angle) + a * std::sin(angle)) * rope.attention_factor;
        a = rotated * rope.attention_factor;
      }
    }
  }
}

// Rounds to the model's dtype, like every runtime does before it caches.
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

void add_to(Rows& x, const Rows& y, double multiplier) {
  for (size_t row = 0; row < x.size(); ++row) {
    for (size_t i = 0; i < x[row].size(); ++i) x[row][i] += multiplier * y[row][i];
  }
}

// Adds a block's output to x, with the norm after the block if there is one.
Rows joined(const Rows& x, const Rows& made, const std::string& norm, const Layer& layer,
            const ModelConfig& config) {
  const NormPlace place = config.block.norm_place;
  const auto after = [&](const Rows& rows) {
    return normed(rows, layer.tensor(norm + ".weight"), layer.tensor(norm + ".bias"), config);
  };
  const bool own = place == NormPlace::after || place == NormPlace::around;
  Rows sum = x;
  add_to(sum, own ? after(made) : made, config.block.residual_multiplier);
  return place == NormPlace::after_add ? after(sum) : sum;
}

// The input of a block, with the norm before it if there is one.
Rows entering(const Rows& x, const std::string& norm, const Layer& layer,
              const ModelConfig& config) {
  const NormPlace place = config.block.norm_place;
  if (place == NormPlace::after || place == NormPlace::after_add) return x;
  return normed(x, layer.tensor(norm + ".weight"), layer.tensor(norm + ".bias"), config);
}

// The feed-forward block with the modules `gate`, `up` and `down`.
Rows feed_forward(const Rows& x, const Layer& layer, const ModelConfig& config,
                  const std::array<std::string, 3>& names) {
  const BlockConfig& block = config.block;
  Rows hidden = layer.project(block.gated ? names[0] : names[1], x);
  const Rows up = layer.project(names[1], x);
  for (size_t row = 0; row < hidden.size(); ++row) {
    for (size_t i = 0; i < hidden[row].size(); ++i) {
      hidden[row][i] = activated(hidden[row][i], block.activation);
      if (block.gated) hidden[row][i] *= up[row][i];
    }
  }
  return layer.project(names[2], hidden);
}

Rows experts(const Rows& x, const Layer& layer, const ModelConfig& config) {
  const bool mixtral = !layer.tensor("block_sparse_moe.gate.weight").empty();
  const std::string part = mixtral ? "block_sparse_moe." : "mlp.";
  const Rows logits = layer.project(part + "gate", x);
  const Vector bias = layer.tensor(part + "gate.e_score_correction_bias");
  Rows out(x.size(), Vector(x[0].size(), 0.0));
  for (int64_t i = 0; i < config.experts->choices(); ++i) {
    const std::string at = cat(part, "experts.", i, ".");
    const std::array<std::string, 3> names =
        mixtral ? std::array{at + "w1", at + "w3", at + "w2"}
                : std::array{at + "gate_proj", at + "up_proj", at + "down_proj"};
    const Rows made = i < config.experts->count ? feed_forward(x, layer, config, names) : x;
    for (size_t row = 0; row < x.size(); ++row) {
      const Vector weights = expert_weights(logits[row], bias, config.experts->routing);
      for (size_t j = 0; j < out[row].size(); ++j) {
        out[row][j] += weights[static_cast<size_t>(i)] * made[row][j];
      }
    }
  }
  if (config.experts->shared_hidden_dim == 0) return out;
  const std::string shared = part + "shared_expert.";
  const Rows made = feed_forward(x, layer, config,
                                 {shared + "gate_proj", shared + "up_proj", shared + "down_proj"});
  const bool gated = config.experts->shared_gated;
  for (size_t row = 0; row < x.size(); ++row) {
    const double share =
        gated ? sigmoid(layer.project(part + "shared_expert_gate", {x[row]})[0][0]) : 1;
    for (size_t j = 0; j < out[row].size(); ++j) out[row][j] += share * made[row][j];
  }
  return out;
}

Rows times(Rows rows, double multiplier) {
  for (Vector& row : rows) {
    for (double& value : row) value *= multiplier;
  }
  return rows;
}

// The stream that a block's output joins, for rows x before the block and its input y.
Rows stream_of(const Rows& x, const Rows& y, double factor, const ModelConfig& config) {
  return times(config.block.norm_place == NormPlace::carried ? y : x, factor);
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

// The heads of a layer, and how differential attention subtracts them.
ReferenceHeads heads_of(const Layer& layer, const ModelConfig& config) {
  ReferenceHeads heads{config, config.window(layer.index)};
  if (!config.block.differential) return heads;
  const auto power = [&](const char* q, const char* k) {
    const Vector of_q = layer.tensor(q), of_k = layer.tensor(k);
    return std::exp(std::inner_product(of_q.begin(), of_q.end(), of_k.begin(), 0.0));
  };
  heads.first_lambda = 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer.index));
  heads.lambda = power("self_attn.lambda_q1", "self_attn.lambda_k1") -
                 power("self_attn.lambda_q2", "self_attn.lambda_k2") + heads.first_lambda;
  return heads;
}

ReferenceErrors measure(const Rows& q, const Rows& k, const Rows& v, const Rows& attended,
                        int64_t layer, const CacheRounding& rounding, const ReferenceHeads& heads) {
  const ModelConfig& config = heads.config;
  Rows lossy_k = k, lossy_v = v;
  round_rows(lossy_k, config, rounding, layer, true);
  round_rows(lossy_v, config, rounding, layer, false);
  ReferenceErrors errors;
  add_squares(k, lossy_k, errors.k_error, errors.k);
  add_squares(v, lossy_v, errors.v_error, errors.v);
  add_squares(attended, attend_all(q, lossy_k, lossy_v, heads), errors.attention_error,
              errors.attention);
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
    for (double& value : x.back()) value *= config.block.embed_multiplier;
  }
  ReferenceRun run;
  Rows waiting;  // what experts gave that joins the stream one layer later
  for (int64_t index = 0; index < config.n_layers(); ++index) {
    const Layer layer{checkpoint, index};
    const Rows y = entering(x, "input_layernorm", layer, config);
    Rows q = layer.project("self_attn.q_proj", y);
    Rows k = layer.project("self_attn.k_proj", y);
    Rows v = layer.project("self_attn.v_proj", y);
    const auto norm_heads = [&] {
      q = heads_normed(q, layer.tensor("self_attn.q_norm.weight"), config);
      k = heads_normed(k, layer.tensor("self_attn.k_norm.weight"), config);
    };
    if (!config.qk_norm_rotated) norm_heads();
    rotate(q, config, index);
    rotate(k, config, index);
    if (config.qk_norm_rotated) norm_heads();
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
    const ReferenceHeads heads = heads_of(layer, config);
    const Rows attended = attend_all(q, k, v, heads);
    if (measured) run.errors.push_back(measure(q, k, v, attended, index, measured, heads));
    const PostNormNames post_norms = post_norm_names(config.architecture);
    const std::string ffn_norm =
        config.block.shared_norm ? "input_layernorm" : "post_attention_layernorm";
    const Rows before = x;
    const StreamFactors& factors = config.block.stream_factors;
    x = joined(stream_of(x, y, factors.attention, config),
               layer.project("self_attn.o_proj", attended), post_norms.attention, layer, config);
    const Rows z = entering(config.block.parallel ? before : x, ffn_norm, layer, config);
    const bool waits = config.has_shortcut() && config.has_experts(index);
    if (waits) waiting = experts(z, layer, config);
    Rows fed =
        config.has_experts(index) && !waits
            ? times(experts(z, layer, config), config.experts->multiplier)
            : feed_forward(z, layer, config, {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"});
    if (config.has_experts(index) && config.experts->post_norm) {
      fed = normed(fed, layer.tensor(cat(post_norms.feed_forward, ".weight")), {}, config);
    }
    x = joined(stream_of(x, z, factors.feed_forward, config), fed, post_norms.feed_forward, layer,
               config);
    for (size_t row = 0; config.ends_shortcut(index) && row < x.size(); ++row) {
      for (size_t j = 0; j < x[row].size(); ++j) x[row][j] += waiting[row][j];
    }
  }
  const bool own_head = checkpoint.find("lm_head.weight") != nullptr && !config.tied_embeddings;
  const Vector head = own_head ? values_of(checkpoint, "lm_head.weight") : embedding;
  const auto outer = [&](const char* name) {
    return checkpoint.find(name) ? values_of(checkpoint, name) : Vector();
  };
  if (config.block.norm_place != NormPlace::after_add) {
    x = normed(x, outer("model.norm.weight"), outer("model.norm.bias"), config);
  }
  for (const Vector& row : x) {
    run.logits.push_back(product(head, outer("lm_head.bias"), row));
    for (double& logit : run.logits.back()) {
      logit = capped(logit * config.block.logit_multiplier, config.block.logit_cap);
    }
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
