#include "model/weights/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>

#include "base/error.h"

namespace fp8kv {

namespace {

// Tensors as they are found, put where the forward pass looks for them.
struct Placing {
  const ModelConfig& config;
  bool is_bias;
  ConstTensorView view;
  std::optional<QuantisedMatrix> codes = {};

  void into(Linear& linear) const {
    if (is_bias) {
      linear.bias = view;
    } else {
      linear.weight = view;
      linear.codes = codes;
    }
  }
  void into(std::optional<Linear>& linear) const {
    if (!linear) linear.emplace();
    into(*linear);
  }
  void into(Norm& norm) const {
    norm.kind = config.block.norm;
    norm.eps = static_cast<float>(config.norm_eps);
    norm.weight_offset = config.block.norm_plus_one ? 1.0f : 0.0f;
    if (is_bias) {
      norm.bias = view;
    } else {
      norm.weight = view;
    }
  }
  void into(std::optional<Norm>& norm) const {
    if (!norm) norm.emplace();
    into(*norm);
  }
  // Of a norm inside of latent attention.
  void into_latent(Norm& norm) const {
    into(norm);
    norm.eps = static_cast<float>(config.latent->norm_eps);
  }
  QkNorms& qk_norms(LayerWeights& layer) const {
    if (!layer.attn.norms) layer.attn.norms.emplace();
    layer.attn.norms->whole = config.block.qk_norm == QkNorm::whole;
    return *layer.attn.norms;
  }
};

// Of a norm that has no weights.
Norm plain_norm(const ModelConfig& config, int64_t size, const WeightSource& source) {
  Norm norm;
  norm.kind = config.block.norm;
  norm.eps = static_cast<float>(config.norm_eps);
  norm.weight = ones(config.dtype, size, source);
  return norm;
}

// A matrix of one expert, or of all, that products read as it is stored.
void place_expert_codes(const ModelConfig& config, const ModelTensor& tensor,
                        const TensorPart& part, size_t matrix, DType dtype,
                        const QuantisedMatrix& codes, LayerExperts& out) {
  const auto count = static_cast<size_t>(config.experts->count);
  out.each.resize(count);
  out.codes.resize(3 * count);
  const auto put = [&](size_t expert, int64_t in_tensor) {
    out.each[expert][matrix] = {nullptr, dtype, Shape{part.rows, codes.columns}};
    out.codes[matrix * count + expert] = part_of_codes(tensor, part, in_tensor, codes);
  };
  if (tensor.expert >= 0) return put(static_cast<size_t>(tensor.expert), 0);
  for (size_t expert = 0; expert < count; ++expert) put(expert, static_cast<int64_t>(expert));
}

// Of all experts.
void place_expert_bias(size_t matrix, const ConstTensorView& view, LayerExperts& out) {
  if (!out.biases) out.biases.emplace();
  ExpertBiases& biases = *out.biases;
  (matrix == 0 ? biases.gate : matrix == 1 ? biases.up : biases.down) = view;
}

// A matrix of one expert, or of all one after another.
void place_expert(const ModelConfig& config, const ModelTensor& tensor, const TensorPart& part,
                  size_t matrix, const ConstTensorView& view, const WeightSource& source,
                  LayerExperts& out) {
  out.each.resize(static_cast<size_t>(config.experts->count));
  if (tensor.expert >= 0) {
    out.each[static_cast<size_t>(tensor.expert)][matrix] = part_of(tensor, part, view, source);
    return;
  }
  const size_t bytes = view.bytes() / out.each.size();
  for (size_t i = 0; i < out.each.size(); ++i) {
    const ConstTensorView one(view.data + i * bytes, view.dtype,
                              Shape{view.shape[1], view.shape[2]});
    out.each[i][matrix] = part_of(tensor, part, one, source);
  }
}

LayerExperts& experts_of(LayerWeights& layer) {
  if (!layer.experts) layer.experts.emplace();
  return *layer.experts;
}

NormsBeside& beside_of(LayerWeights& layer) {
  LayerExperts& experts = experts_of(layer);
  if (!experts.beside) experts.beside.emplace();
  return *experts.beside;
}

LatentWeights& latent_of(LayerWeights& layer) {
  if (!layer.latent) layer.latent.emplace();
  return *layer.latent;
}

std::array<Linear, 3>& shared_of(LayerWeights& layer) {
  LayerExperts& experts = experts_of(layer);
  if (!experts.shared) experts.shared.emplace();
  return *experts.shared;
}

StreamWeights& streams_of(LayerWeights& layer) {
  if (!layer.streams) layer.streams.emplace();
  return *layer.streams;
}

LaurelWeights& laurel_of(LayerWeights& layer) {
  if (!layer.laurel) layer.laurel.emplace();
  return *layer.laurel;
}

StateWeights& state_of(LayerWeights& layer) {
  if (!layer.state) layer.state.emplace();
  return *layer.state;
}

void place_state(TensorRole role, const Placing& tensor, LayerWeights& layer) {
  StateWeights& state = state_of(layer);
  switch (role) {
    case TensorRole::state_q:
      return tensor.into(state.q);
    case TensorRole::state_k:
      return tensor.into(state.k);
    case TensorRole::state_v:
      return tensor.into(state.v);
    case TensorRole::state_gate:
      return tensor.into(state.gate);
    case TensorRole::state_step:
      return tensor.into(state.step);
    case TensorRole::state_strength:
      return tensor.into(state.strength);
    case TensorRole::conv_q:
      return tensor.into(state.conv_q);
    case TensorRole::conv_k:
      return tensor.into(state.conv_k);
    case TensorRole::conv_v:
      return tensor.into(state.conv_v);
    case TensorRole::state_decay:
      state.decay = tensor.view;
      return;
    case TensorRole::state_step_bias:
      state.step_bias = tensor.view;
      return;
    case TensorRole::state_skip:
      state.skip = tensor.view;
      return;
    case TensorRole::state_norm:
      tensor.into(state.norm);
      state.norm.weight_offset = 0.0f;
      return;
    case TensorRole::state_out:
      return tensor.into(layer.o);
    default:
      assertion_failed("a role of a state", __FILE__, __LINE__);
  }
}

LayerInput& input_of(LayerWeights& layer) {
  if (!layer.input) layer.input.emplace();
  return *layer.input;
}

void place(TensorRole role, const Placing& tensor, LayerWeights& layer) {
  if (role >= TensorRole::state_q && role <= TensorRole::state_out) {
    return place_state(role, tensor, layer);
  }
  switch (role) {
    case TensorRole::attn_norm:
      return tensor.into(layer.attn_norm);
    case TensorRole::q:
      return tensor.into(layer.attn.q);
    case TensorRole::k:
      return tensor.into(layer.attn.k);
    case TensorRole::v:
      return tensor.into(layer.attn.v);
    case TensorRole::attn_gate:
      return tensor.into(layer.attn_gate);
    case TensorRole::q_down:
      return tensor.into(latent_of(layer).q_down);
    case TensorRole::q_down_norm:
      return tensor.into_latent(latent_of(layer).q_down_norm.emplace());
    case TensorRole::latent:
      return tensor.into(latent_of(layer).latent);
    case TensorRole::k_rope:
      return tensor.into(latent_of(layer).k_rope);
    case TensorRole::latent_norm:
      return tensor.into_latent(latent_of(layer).norm);
    case TensorRole::k_up:
      latent_of(layer).k_up = tensor.view;
      return;
    case TensorRole::v_up:
      latent_of(layer).v_up = {
          tensor.view.data, tensor.view.dtype,
          Shape{tensor.config.n_heads, tensor.config.latent->v_dim, tensor.config.latent->rank}};
      return;
    case TensorRole::q_norm:
      return tensor.into(tensor.qk_norms(layer).q);
    case TensorRole::k_norm:
      return tensor.into(tensor.qk_norms(layer).k);
    case TensorRole::sinks:
      layer.sinks = tensor.view;
      return;
    case TensorRole::o:
      return tensor.into(layer.o);
    case TensorRole::attn_post_norm:
      return tensor.into(layer.attn_post_norm);
    case TensorRole::ffn_norm:
      return tensor.into(layer.ffn_norm);
    case TensorRole::gate:
      return tensor.into(layer.gate);
    case TensorRole::up:
      return tensor.into(layer.up);
    case TensorRole::down:
      return tensor.into(layer.down);
    case TensorRole::ffn_post_norm:
      return tensor.into(layer.ffn_post_norm);
    case TensorRole::stream_norm:
      return tensor.into(streams_of(layer).norm);
    case TensorRole::stream_router:
      return tensor.into(streams_of(layer).router);
    case TensorRole::stream_predict:
      return tensor.into(streams_of(layer).predict);
    case TensorRole::stream_correct:
      return tensor.into(streams_of(layer).correct);
    case TensorRole::stream_scale:
      streams_of(layer).scale = tensor.view;
      return;
    case TensorRole::laurel_down:
      return tensor.into(laurel_of(layer).down);
    case TensorRole::laurel_up:
      return tensor.into(laurel_of(layer).up);
    case TensorRole::laurel_norm:
      return tensor.into(laurel_of(layer).norm);
    case TensorRole::input_gate:
      return tensor.into(input_of(layer).gate);
    case TensorRole::input_out:
      return tensor.into(input_of(layer).out);
    case TensorRole::input_post_norm:
      return tensor.into(input_of(layer).post_norm);
    case TensorRole::router:
      return tensor.into(experts_of(layer).router);
    case TensorRole::router_norm:
      return tensor.into(experts_of(layer).router_norm);
    case TensorRole::choice_bias:
      experts_of(layer).terms.choice_bias = tensor.view;
      return;
    case TensorRole::expert_factors:
      experts_of(layer).terms.factors = tensor.view;
      return;
    case TensorRole::experts_norm:
      return tensor.into(beside_of(layer).experts);
    case TensorRole::experts_post_norm:
      return tensor.into(beside_of(layer).experts_post);
    case TensorRole::dense_post_norm:
      return tensor.into(beside_of(layer).dense_post);
    case TensorRole::experts_in:
      return tensor.into(experts_of(layer).in);
    case TensorRole::experts_out:
      return tensor.into(experts_of(layer).out);
    case TensorRole::shared_gate:
      return tensor.into(shared_of(layer)[0]);
    case TensorRole::shared_up:
      return tensor.into(shared_of(layer)[1]);
    case TensorRole::shared_down:
      return tensor.into(shared_of(layer)[2]);
    case TensorRole::shared_router:
      return tensor.into(experts_of(layer).shared_router);
    default:
      assertion_failed("a role of a layer", __FILE__, __LINE__);
  }
}

// Which of an expert's matrices has this role; 3: none.
size_t expert_matrix(TensorRole role) {
  switch (role) {
    case TensorRole::expert_gate:
      return 0;
    case TensorRole::expert_up:
      return 1;
    case TensorRole::expert_down:
      return 2;
    default:
      return 3;
  }
}

// The number that this share of a normal distribution is below.
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

// A number that the host gives to ops.
bool is_number(const ModelTensor& tensor) {
  return tensor.parts.front().role == TensorRole::layer_scale;
}

void put_addresses(LayerExperts& experts, const WeightSource& source) {
  const auto count = static_cast<int64_t>(experts.each.size());
  const TensorView memory = source.room(DType::u64, Shape{3, count});
  experts.addresses = memory;
  if (source.backend == nullptr) return;
  std::vector<uint64_t> addresses;
  for (size_t matrix = 0; matrix < 3; ++matrix) {
    for (const auto& expert : experts.each) {
      addresses.push_back(reinterpret_cast<uintptr_t>(expert[matrix].data));
    }
  }
  source.backend->copy_in(
      memory, {reinterpret_cast<const std::byte*>(addresses.data()), DType::u64, memory.shape});
}

}  // namespace

std::vector<ModelTensor> needed_tensors(const ModelConfig& config, int64_t index, LayerPart part) {
  std::vector<ModelTensor> tensors = layer_tensors(config, index);
  if (part == LayerPart::up_to_kv) std::erase_if(tensors, comes_after_kv);
  std::erase_if(tensors, is_number);
  return tensors;
}

LayerWeights make_layer_weights(const ModelConfig& config, int64_t index, LayerPart part,
                                const WeightSource& source) {
  LayerWeights layer;
  layer.mixes = config.layer(index).mixing != Mixing::none;
  layer.feeds_forward = config.layer(index).feed_forward != FeedForward::none;
  std::map<TensorRole, TensorView> joined_rows;  // of what files have one by one
  for (const ModelTensor& needed : needed_tensors(config, index, part)) {
    const auto [view, codes, was_codes] = source.find(needed);
    const ModelTensor tensor = was_codes ? as_decoded(needed) : needed;
    for (const TensorPart& each : tensor.parts) {
      const size_t matrix = expert_matrix(each.role);
      if (matrix < 3 && tensor.is_bias && tensor.expert >= 0) {
        TensorView& rows = joined_rows[each.role];
        add_row(tensor, config.experts->count, view, source, rows);
        place_expert_bias(matrix, rows, experts_of(layer));
      } else if (matrix < 3 && tensor.is_bias) {
        place_expert_bias(matrix, part_of_biases(tensor, each, view, source), experts_of(layer));
      } else if (matrix < 3 && codes) {
        place_expert_codes(config, tensor, each, matrix, view.dtype, *codes, experts_of(layer));
      } else if (matrix < 3) {
        place_expert(config, tensor, each, matrix, view, source, experts_of(layer));
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
  if (config.block.layer_scale && part == LayerPart::whole) {
    const std::vector<ModelTensor> all = layer_tensors(config, index);
    layer.scale = source.number(*std::find_if(all.begin(), all.end(), is_number));
  }
  const auto cut = config.gate_cuts.empty() ? 0.0 : config.gate_cuts[static_cast<size_t>(index)];
  if (cut > 0) layer.gate_cut = static_cast<float>(normal_quantile(cut));
  if (config.block.shared_norm) layer.ffn_norm = layer.attn_norm;
  if (config.block.qk_norm == QkNorm::plain && config.turns(index)) {
    const Norm norm = plain_norm(config, config.layer(index).k_head_dim, source);
    layer.attn.norms = QkNorms{norm, norm};
  }
  if (config.layer(index).v_is_k) layer.attn.v = layer.attn.k;
  if (config.block.v_norm && config.writes_cache(index)) {
    layer.attn.norms->v = plain_norm(config, config.layer(index).v_head_dim, source);
  }
  if (layer.experts) put_addresses(*layer.experts, source);
  return layer;
}

Tensor WeightLoader::upload_file(const std::string& name) const {
  const MappedTensor mapped = checkpoint_.map(name);
  return with_way_out("free memory of the device, or run on the CPU: the weights have to fit", [&] {
    return with_context(cat("weight ", quote(name)),
                        [&] { return backend_.upload(mapped.view, mapped.keep_alive); });
  });
}

Tensor WeightLoader::upload(const ModelTensor& tensor) const {
  std::vector<Tensor> storage;
  upload(tensor, false, storage);
  return std::move(storage.back());
}

// What products need of a tensor lives in `storage`; where that is no codes, in its last.
FoundTensor WeightLoader::upload(const ModelTensor& tensor, bool may_have_codes,
                                 std::vector<Tensor>& storage) const {
  const Weight weight = weights_.at(tensor);
  if (!weight.stored) return {storage.emplace_back(upload_file(weight.name)).view()};
  weights_.check_values(weight);
  std::vector<Tensor> files, turned;
  const QuantisedMatrix matrix = matrix_of(*weight.stored, [&](const TensorEntry& entry) {
    return ConstTensorView(files.emplace_back(upload_file(entry.name)).view());
  });
  if (may_have_codes && may_be_codes(tensor)) {
    const bool of_expert = expert_matrix(tensor.parts.front().role) < 3;
    const WeightUse use = of_expert ? WeightUse::experts : WeightUse::linear;
    const auto codes = backend_.in_place(matrix, weight.dtype, use, turned);
    if (codes && has_parts(tensor, *codes)) {
      for (std::vector<Tensor>* from : {&files, &turned}) {
        std::move(from->begin(), from->end(), std::back_inserter(storage));
      }
      return {{nullptr, weight.dtype, weight.shape}, codes};
    }
  }
  Tensor decoded = with_context(cat("weight ", quote(weight.name)), [&] {
    return backend_.allocate(weight.dtype, as_decoded(tensor).shape);
  });
  decode(tensor, matrix, backend_, decoded.view());
  return {storage.emplace_back(std::move(decoded)).view(), {}, true};
}

ModelTensor embedding_tensor(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::string own = weight_name(config, TensorRole::embedding);
  const std::string name = checkpoint.find(own) ? own : weight_name(config, TensorRole::lm_head);
  for (ModelTensor& tensor : outer_tensors(config)) {
    if (tensor.name == name) return std::move(tensor);
  }
  assertion_failed("a row for the embedding", __FILE__, __LINE__);
}

Tensor WeightLoader::tensor(const ModelTensor& tensor) const {
  return upload(tensor);
}

std::optional<Tensor> WeightLoader::outer(TensorRole role) const {
  for (const ModelTensor& tensor : outer_tensors(config_)) {
    if (tensor.parts.front().role == role && !tensor.is_bias) return upload(tensor);
  }
  return std::nullopt;
}

std::vector<Tensor> WeightLoader::outers(TensorRole role) const {
  std::vector<Tensor> all;
  for (const ModelTensor& tensor : outer_tensors(config_)) {
    if (tensor.parts.front().role == role) all.push_back(upload(tensor));
  }
  return all;
}

LayerWeights WeightLoader::layer(int64_t index) const {
  std::vector<Tensor> storage, not_kept;
  const auto find = [&](const ModelTensor& tensor) {
    const bool stored = weights_.at(tensor).stored.has_value();
    return upload(tensor, true,
                  is_copied(stored ? as_decoded(tensor) : tensor) ? not_kept : storage);
  };
  const auto room = [&](DType dtype, const Shape& shape) {
    return storage.emplace_back(backend_.allocate(dtype, shape)).view();
  };
  const auto number = [&](const ModelTensor& tensor) { return number_in(checkpoint_, tensor); };
  LayerWeights layer =
      make_layer_weights(config_, index, LayerPart::whole, {find, room, number, &backend_});
  layer.storage = std::move(storage);
  return layer;
}

Tensor WeightLoader::normed_rows(const ModelTensor& tensor) const {
  const Tensor rows = upload(tensor);
  const ConstTensorView view = rows.view();
  auto host = std::make_shared<std::vector<std::byte>>(view.bytes());
  backend_.download(view, *host);
  std::byte* const data = host->data();
  norm_rows({data, view.dtype, view.shape}, data);
  return backend_.upload({data, view.dtype, view.shape}, std::move(host));
}

HeadWeights WeightLoader::head() const {
  const std::string lm_head = weight_name(config_, TensorRole::lm_head);
  const bool shared = config_.tied_embeddings;
  HeadWeights head;
  for (const ModelTensor& tensor : outer_tensors(config_)) {
    const TensorRole role = tensor.parts.front().role;
    if (role < TensorRole::attn_norm || (shared && tensor.name == lm_head)) continue;
    FoundTensor found;
    if (config_.block.head_normed && tensor.name == lm_head) {
      found.view = head.storage.emplace_back(normed_rows(tensor)).view();
    } else {
      found = upload(tensor, true, head.storage);
    }
    const Placing loaded{config_, tensor.is_bias, found.view, found.codes};
    if (role == TensorRole::norm) {
      loaded.into(head.norm);
    } else if (role == TensorRole::stream_out) {
      loaded.into(head.streams.emplace_back());
    } else if (role == TensorRole::head_down) {
      loaded.into(head.down);
    } else {
      FP8KV_ASSERT(role == TensorRole::lm_head);
      loaded.into(head.lm_head);
    }
  }
  if (shared) {
    const ModelTensor tensor = embedding_tensor(checkpoint_, config_);
    head.storage.push_back(config_.block.head_normed ? normed_rows(tensor) : upload(tensor));
    head.lm_head.weight = head.storage.back().view();
  }
  return head;
}

}  // namespace fp8kv
