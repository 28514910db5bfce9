#include "model/weights/weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/model/tensor_roles.h"
#include "core/numbers/host_view.h"
#include "model/weights/place_expert.h"
#include "model/weights/place_tensor.h"

namespace fp8kv {
namespace {

// The number below which this share of a normal distribution lies.
double normal_quantile(double share) {
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
  }
  return low;
}

bool comes_after_kv(const ModelTensor& tensor) {
  return tensor.parts.front().role > TensorRole::k_norm;
}

// Whether the host computes with the tensor.
bool is_for_host(const ModelTensor& tensor) {
  const TensorRole role = tensor.parts.front().role;
  return role == TensorRole::attn_residual_gate || role == TensorRole::ffn_residual_gate ||
         role == TensorRole::layer_scale || role == TensorRole::dense_scale ||
         role == TensorRole::experts_scale ||
         (role >= TensorRole::lambda_q1 && role <= TensorRole::lambda_k2) ||
         (role >= TensorRole::xielu_positive && role <= TensorRole::xielu_eps);
}

// Files have the two factors as inverses of softplus, and the negative one without beta.
Xielu xielu_of(const std::map<TensorRole, float>& numbers) {
  const auto softplus = [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); };
  const double beta = numbers.at(TensorRole::xielu_beta);
  return {static_cast<float>(softplus(numbers.at(TensorRole::xielu_positive))),
          static_cast<float>(beta + softplus(numbers.at(TensorRole::xielu_negative))),
          static_cast<float>(beta), numbers.at(TensorRole::xielu_eps)};
}

// The lambda that training starts from, of layers from 0 on. Source: Differential Transformer,
// arXiv 2410.05258, section 2.1
double first_lambda(int64_t index) {
  return 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(index));
}

void set_differential(const ModelConfig& config, int64_t index, const WeightSource& source,
                      LayerWeights& layer) {
  if (!config.block.differential || !config.attends(index)) return;
  std::map<TensorRole, std::vector<float>> vectors;
  for (const ModelTensor& tensor : layer_tensors(config, index)) {
    if (is_for_host(tensor)) vectors[tensor.parts.front().role] = source.numbers(tensor);
  }
  const auto power = [&](TensorRole q, TensorRole k) {
    const std::vector<float>&of_q = vectors.at(q), &of_k = vectors.at(k);
    return std::exp(std::inner_product(of_q.begin(), of_q.end(), of_k.begin(), 0.0));
  };
  const double first = first_lambda(index);
  DifferentialWeights& made = layer.differential.emplace();
  made.lambda = static_cast<float>(power(TensorRole::lambda_q1, TensorRole::lambda_k1) -
                                   power(TensorRole::lambda_q2, TensorRole::lambda_k2) + first);
  made.norm = plain_norm(config, 2 * config.layer(index).v_head_dim, source);
  made.norm.weight_offset = static_cast<float>(-first);
}

void set_numbers(const ModelConfig& config, int64_t index, const WeightSource& source,
                 LayerWeights& layer) {
  set_differential(config, index, source, layer);
  if (!config.block.layer_scale && !config.block.xielu && !config.block.ffn_scale) return;
  std::map<TensorRole, float> numbers;
  for (const ModelTensor& tensor : layer_tensors(config, index)) {
    if (is_for_host(tensor)) numbers[tensor.parts.front().role] = source.numbers(tensor).front();
  }
  if (config.block.layer_scale) layer.scale = numbers.at(TensorRole::layer_scale);
  if (config.block.xielu && layer.feeds_forward) layer.xielu = xielu_of(numbers);
  if (config.block.ffn_scale && layer.feeds_forward) {
    const bool of_experts = config.has_experts(index);
    layer.ffn_scale = numbers.at(of_experts ? TensorRole::experts_scale : TensorRole::dense_scale);
  }
}

ResidualGate residual_gate(const std::vector<float>& numbers, double temperature,
                           const WeightSource& source) {
  std::vector<float> of_stream, of_output;
  for (const float number : numbers) {
    const double share = 1 / (1 + std::exp(-number / temperature));
    of_output.push_back(static_cast<float>(share));
    of_stream.push_back(
        static_cast<float>(std::sqrt(std::max((1 - share) * (1 + share), kLeastKept))));
  }
  return {{constants(of_stream, source)}, {constants(of_output, source)}};
}

void set_residual_gates(const ModelConfig& config, int64_t index, const WeightSource& source,
                        LayerWeights& layer) {
  const double temperature = config.block.gate_temperature;
  if (temperature == 0.0) return;
  for (const ModelTensor& tensor : layer_tensors(config, index)) {
    const TensorRole role = tensor.parts.front().role;
    if (role == TensorRole::attn_residual_gate) {
      layer.attn_residual_gate = residual_gate(source.numbers(tensor), temperature, source);
    } else if (role == TensorRole::ffn_residual_gate) {
      layer.ffn_residual_gate = residual_gate(source.numbers(tensor), temperature, source);
    }
  }
}

// A layer without weights, with what only the config says.
LayerWeights empty_layer(const ModelConfig& config, int64_t index) {
  LayerWeights layer;
  layer.norm_place = config.norm_place(index);
  layer.ffn_norm_place = config.ffn_norm_place(index);
  layer.feeds_forward = config.layer(index).feed_forward != FeedForward::none;
  layer.ends_shortcut = config.ends_shortcut(index);
  if (config.attn_res_block > 0) {
    layer.starts_block = index % config.attn_res_block == 0;
    layer.attn_res.emplace().sources = 1 + config.attn_res_blocks(index);
    layer.ffn_res.emplace().sources = 1 + config.attn_res_blocks(index + 1);
  }
  return layer;
}

// Finishes the experts of a layer: their addresses, and the choice of those that are fixed.
void finish_experts(const ExpertsConfig& config, LayerExperts& experts,
                    const WeightSource& source) {
  if (config.fixed > 0 && experts.terms.choice_bias) {
    experts.terms.choice_bias = always_chosen(*experts.terms.choice_bias, config.fixed, source);
  }
  const auto count = static_cast<int64_t>(experts.each.size());
  const TensorView memory = source.allocate(DType::u64, Shape{3, count});
  experts.addresses = memory;
  if (source.backend == nullptr) return;
  std::vector<uint64_t> addresses;
  for (size_t matrix = 0; matrix < 3; ++matrix) {
    for (const auto& expert : experts.each) {
      addresses.push_back(reinterpret_cast<uintptr_t>(expert[matrix].data));
    }
  }
  source.backend->copy_in(memory, host_view(addresses, memory.shape));
}

// Gives a state what others compute from each row: the logarithms of the slopes of its heads, and
// no bias of a step, which is always 1.
void set_fixed_decays(const ModelConfig& config, int64_t index, const WeightSource& source,
                      StateWeights& state) {
  const auto heads = static_cast<size_t>(config.recurrence->v_heads);
  std::vector<float> logs;
  for (size_t head = 0; head < heads; ++head) {
    const double slope =
        decay_slope(*config.recurrence, static_cast<int64_t>(head), index, config.n_layers());
    logs.push_back(static_cast<float>(std::log(slope)));
  }
  state.decay = constants(logs, source);
  state.step_bias = constants(std::vector<float>(heads, 0.0f), source);
}

}  // namespace

Norm plain_norm(const ModelConfig& config, int64_t size, const WeightSource& source) {
  Norm norm;
  norm.kind = config.block.norm;
  norm.eps = static_cast<float>(config.norm_eps);
  norm.weight = ones(config.dtype, size, source);
  return norm;
}

namespace {

// Sets the norms of heads that have no weights.
void set_plain_head_norms(const ModelConfig& config, int64_t index, const WeightSource& source,
                          LayerWeights& layer) {
  const bool turns = config.block.qk_norm == QkNorm::plain && config.turns(index);
  if (turns || (config.block.qk_norm == QkNorm::plain_all && config.attends(index))) {
    const Norm norm = plain_norm(config, config.layer(index).k_head_dim, source);
    layer.attn.norms = QkNorms{norm, norm};
    layer.attn.norms->q.weight_offset = static_cast<float>(config.block.q_multiplier - 1.0);
  }
  if (config.shared_row) {
    layer.attn.norms.value().q = plain_norm(config, config.layer(index).k_head_dim, source);
  }
}

}  // namespace

namespace {

// A norm of a block's output, without weights.
Norm plain_post_norm(const ModelConfig& config, int64_t size, const WeightSource& source) {
  Norm norm = plain_norm(config, size, source);
  if (config.post_norm_eps > 0) norm.eps = static_cast<float>(config.post_norm_eps);
  return norm;
}

// Sets the norms without weights behind a layer's blocks, and between attention and its gate.
void set_plain_post_norms(const ModelConfig& config, int64_t index, const WeightSource& source,
                          LayerWeights& layer) {
  const BlockConfig& block = config.block;
  if (block.attended_norm && config.attends(index)) {
    layer.attended_norm = plain_norm(config, config.layer(index).v_head_dim, source);
  }
  if (block.bare_attn_post_norm) {
    layer.attn_post_norm = plain_post_norm(config, config.dim, source);
  }
  if (layer.ffn_post_factors) {
    layer.ffn_post_norm = plain_post_norm(config, config.dim, source);
  }
  if (layer.experts && layer.experts->each_factors) {
    const int64_t size = layer.experts->each_factors->weight.shape[0];
    layer.experts->each_norm = plain_post_norm(config, size, source);
  }
}

// Sets what the rest of a layer needs beside its tensors.
void set_rest(const ModelConfig& config, int64_t index, const WeightSource& source,
              LayerWeights& layer) {
  set_numbers(config, index, source, layer);
  set_residual_gates(config, index, source, layer);
  set_plain_post_norms(config, index, source, layer);
}

}  // namespace

std::vector<ModelTensor> needed_tensors(const ModelConfig& config, int64_t index, LayerPart part) {
  std::vector<ModelTensor> tensors = layer_tensors(config, index);
  if (part == LayerPart::up_to_kv) std::erase_if(tensors, comes_after_kv);
  std::erase_if(tensors, [](const ModelTensor& tensor) {
    const TensorRole role = tensor.parts.front().role;
    // Tables of n-grams stay in their files. A drafter names the norms of its input like a layer's.
    return is_for_host(tensor) || role == TensorRole::ngram_table ||
           role_row(role).part == RolePart::embedding;
  });
  return tensors;
}

LayerWeights make_layer_weights(const ModelConfig& config, int64_t index, LayerPart part,
                                const WeightSource& source) {
  LayerWeights layer = empty_layer(config, index);
  std::map<TensorRole, TensorView> joined_rows;  // joins tensors that files have one by one
  for (const ModelTensor& needed : needed_tensors(config, index, part)) {
    const auto [view, codes, is_decoded] = source.find(needed);
    const ModelTensor tensor = is_decoded ? as_decoded(needed) : needed;
    for (const TensorPart& each : tensor.parts) {
      const bool of_expert = expert_matrix(each.role) < 3;
      if (of_expert && tensor.is_bias && tensor.expert >= 0) {
        TensorView& rows = joined_rows[each.role];
        add_row(tensor, config.experts->count, view, source, rows);
        place_expert_bias(each.role, rows, experts_of(layer));
      } else if (of_expert && tensor.is_bias) {
        place_expert_bias(each.role, part_of_biases(tensor, each, view, source), experts_of(layer));
      } else if (of_expert && codes) {
        place_expert_codes({tensor, each, config.experts->count}, view.dtype, *codes,
                           experts_of(layer));
      } else if (of_expert) {
        place_expert({tensor, each, config.experts->count}, view, source, experts_of(layer));
      } else if (codes) {
        const ConstTensorView own(nullptr, view.dtype, Shape{each.rows, view.shape[1]});
        place(each.role, {config, false, own, part_of_codes(tensor, each, 0, *codes)}, layer);
      } else if (tensor.head >= 0) {
        TensorView& rows = joined_rows[each.role];
        add_row(tensor, each.rows, view, source, rows);
        place(each.role, {config, false, rows}, layer);
      } else if (each.role == TensorRole::k_up) {
        place(each.role, {config, false, turned_heads(tensor, each, view, source)}, layer);
      } else {
        const ConstTensorView own = part_of(tensor, each, view, source);
        place(each.role, {config, tensor.is_bias, own}, layer);
      }
    }
  }
  if (part == LayerPart::whole) set_rest(config, index, source, layer);
  const auto cut = config.gate_cuts.empty() ? 0.0 : config.gate_cuts[static_cast<size_t>(index)];
  if (cut > 0) layer.gate_cut = static_cast<float>(normal_quantile(cut));
  layer.swiglu = config.swiglu_of(index);
  if (layer.experts) {
    layer.experts->swiglu = layer.swiglu;
    layer.experts->by_table = config.has_expert_table(index);
  }
  if (config.bare_norms) {
    layer.attn_norm = plain_norm(config, config.dim, source);
    if (part == LayerPart::whole) layer.ffn_norm = plain_norm(config, config.dim, source);
  }
  if (config.block.shared_norm) layer.ffn_norm = layer.attn_norm;
  if (layer.state && config.recurrence->fixed_decays) {
    set_fixed_decays(config, index, source, *layer.state);
  }
  set_plain_head_norms(config, index, source, layer);
  if (config.layer(index).v_is_k) layer.attn.v = layer.attn.k;
  if (config.block.v_norm && config.writes_cache(index)) {
    layer.attn.norms->v = plain_norm(config, config.layer(index).v_head_dim, source);
  }
  if (layer.experts) finish_experts(*config.experts, *layer.experts, source);
  return layer;
}

}  // namespace fp8kv
