#include "support/forms/mistral_form.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/values/language_config.h"
#include "formats/safetensors.h"

namespace fp8kv::test {
namespace {

namespace fs = std::filesystem;

// Parts of names of transformers, and what stands for them; later rows see what earlier ones made.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"language_model.", ""},
    {"model.layers.", "layers."},
    {"model.embed_tokens", "tok_embeddings"},
    {"model.norm", "norm"},
    {"lm_head", "output"},
    {"input_layernorm", "attention_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_a_proj", "attention.wq_a"},
    {"self_attn.q_a_layernorm", "attention.q_a_norm"},
    {"self_attn.q_b_proj", "attention.wq_b"},
    {"self_attn.kv_a_proj_with_mqa", "attention.wkv_a_with_mqa"},
    {"self_attn.kv_a_layernorm", "attention.kv_a_norm"},
    {"self_attn.kv_b_proj", "attention.wkv_b"},
    {"self_attn.q_proj", "attention.wq"},
    {"self_attn.k_proj", "attention.wk"},
    {"self_attn.v_proj", "attention.wv"},
    {"self_attn.o_proj", "attention.wo"},
    {"mlp.shared_experts.", "shared_experts."},
    {"mlp.experts.", "experts."},
    {"mlp.gate.", "gate."},
    {"mlp.", "feed_forward."},
    {"block_sparse_moe.", "feed_forward."},
    {"gate_proj", "w1"},
    {"down_proj", "w2"},
    {"up_proj", "w3"},
    {"weight_scale", "qscale_weight"},
    {"input_scale", "qscale_act"}};

std::string own_name(std::string name) {
  for (const auto& [from, to] : kWords) {
    const size_t at = name.find(from);
    if (at != name.npos) name.replace(at, from.size(), to);
  }
  return name;
}

// A head's rows a0 a1 b0 b1 become a0 b0 a1 b1.
std::string with_pairs_together(const std::string& bytes, int64_t rows, int64_t head_dim) {
  const size_t row_bytes = bytes.size() / static_cast<size_t>(rows);
  std::string out;
  for (int64_t head = 0; head < rows; head += head_dim) {
    for (int64_t pair = 0; pair < head_dim / 2; ++pair) {
      for (const int64_t row : {head + pair, head + pair + head_dim / 2}) {
        out += bytes.substr(static_cast<size_t>(row) * row_bytes, row_bytes);
      }
    }
  }
  return out;
}

// Takes [experts, rows, columns] apart. `names` share the rows of an expert.
void add_experts(const std::string& bytes, DType dtype, const Shape& shape,
                 const std::string& before, const std::vector<std::string>& names,
                 OwnTensors& out) {
  const auto parts = static_cast<int64_t>(names.size());
  const size_t part_bytes = bytes.size() / static_cast<size_t>(shape[0] * parts);
  for (int64_t i = 0; i < shape[0] * parts; ++i) {
    const std::string name =
        cat(before, ".", i / parts, ".", names[static_cast<size_t>(i % parts)], ".weight");
    out[name] = {dtype, Shape{shape[1] / parts, shape[2]},
                 bytes.substr(static_cast<size_t>(i) * part_bytes, part_bytes)};
  }
}

int64_t head_dim_of(const Json& text) {
  return text.get_int("head_dim",
                      text.at("hidden_size").as_int() / text.at("num_attention_heads").as_int());
}

void write_moe(const Json& text, bool latent, JsonWriter& out) {
  out.key("moe").begin_object();
  out.member("num_experts_per_tok", text.at("num_experts_per_tok"));
  out.member("num_experts", text.at(latent ? "n_routed_experts" : "num_local_experts"));
  if (latent) {
    out.member("expert_parallel", 1).member("expert_model_parallel", 1).member("route_every_n", 1);
    out.member("num_shared_experts", text.at("n_shared_experts"));
    out.member("expert_hidden_dim", text.at("moe_intermediate_size"));
    out.member("first_k_dense_replace", text.at("first_k_dense_replace"));
    out.member("routed_scale", text.at("routed_scaling_factor"));
    out.member("num_expert_groups", text.at("n_group"));
    out.member("num_expert_groups_per_tok", text.at("topk_group"));
  }
  out.end_object();
}

void write_yarn(const Json& rope, bool latent, JsonWriter& out) {
  const Json original = rope.at("original_max_position_embeddings");
  out.key("yarn").begin_object();
  out.member("original_max_position_embeddings", original);
  out.member("factor", rope.at("factor"));
  out.member("apply_scale", latent && rope.has("mscale_all_dim"));
  out.member("beta", rope.at("beta_fast")).member("alpha", rope.at("beta_slow")).end_object();
  if (!rope.has("llama_4_scaling_beta")) return;
  out.key("llama_4_scaling").begin_object();
  out.member("original_max_position_embeddings", original);
  out.member("beta", rope.at("llama_4_scaling_beta")).end_object();
}

// A window for all layers, or one for each.
void write_windows(const Json& text, JsonWriter& out) {
  const Json window = text.at("sliding_window");
  out.key("sliding_window");
  const auto types = text.find("layer_types");
  if (!types) {
    out.value(window);
    return;
  }
  out.begin_array();
  for (size_t i = 0; i < types->size(); ++i) {
    (*types)[i].as_string() == "full_attention" ? out.null() : out.value(window);
  }
  out.end_array();
}

}  // namespace

OwnTensors own_tensors(const Checkpoint& model) {
  const Json text = language_config(model.config());
  OwnTensors out;
  for (const auto& [name, place] : model.tensors()) {
    const auto& [dtype, shape] = std::pair(place.entry.dtype, place.entry.shape);
    const std::string bytes = model.read(name), own = own_name(name);
    if (name.find("vision_tower") != name.npos || name.find("projector") != name.npos) {
      out["vision_encoder.ln_pre.weight"] = {DType::f32, Shape{1}, std::string(4, '\0')};
    } else if (name.ends_with("experts.gate_up_proj")) {
      add_experts(bytes, dtype, shape, own.substr(0, own.rfind('.')), {"w1", "w3"}, out);
    } else if (name.ends_with("experts.down_proj")) {
      add_experts(bytes, dtype, shape, own.substr(0, own.rfind('.')), {"w2"}, out);
    } else if (own.find("attention.wq.") != own.npos || own.find("attention.wk.") != own.npos) {
      const bool turned = shape.rank() > 0 && shape[0] > 1;
      out[own] = {dtype, shape,
                  turned ? with_pairs_together(bytes, shape[0], head_dim_of(text)) : bytes};
    } else {
      out[own] = {dtype, shape, bytes};
    }
  }
  return out;
}

std::string params_of(const Json& config) {
  const Json text = language_config(config);
  const bool latent = text.has("kv_lora_rank");
  JsonWriter out;
  out.begin_object();
  out.member("dim", text.at("hidden_size")).member("n_layers", text.at("num_hidden_layers"));
  out.member("head_dim", head_dim_of(text)).member("hidden_dim", text.at("intermediate_size"));
  out.member("n_heads", text.at("num_attention_heads"));
  out.member("n_kv_heads", text.at("num_key_value_heads"));
  out.member("norm_eps", text.at("rms_norm_eps")).member("vocab_size", text.at("vocab_size"));
  out.member("max_position_embeddings", text.at("max_position_embeddings"));
  out.member("tied_embeddings", text.get_bool("tie_word_embeddings", false));
  const auto rope = text.find("rope_parameters");
  out.member("rope_theta", rope ? rope->at("rope_theta") : text.at("rope_theta"));
  if (rope && rope->get_string("rope_type", "") == "yarn") write_yarn(*rope, latent, out);
  for (const char* key :
       {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
    if (latent) out.member(key, text.at(key));
  }
  if (latent || text.has("num_local_experts")) write_moe(text, latent, out);
  if (text.has("sliding_window")) write_windows(text, out);
  if (config.has("vision_config")) {
    out.key("vision_encoder").begin_object().member("image_token_id", 10).end_object();
  }
  if (config.has("quantization_config")) {
    out.key("quantization").begin_object().member("qformat_weight", "fp8_e4m3");
    out.member("qscheme_act", "TENSOR").end_object();
  }
  out.end_object();
  return out.text();
}

void write_own_form(const fs::path& folder, const std::string& params, const OwnTensors& tensors,
                    OwnFiles files) {
  fs::create_directories(folder);
  std::ofstream(folder / "params.json") << params;
  const size_t n_shards = files == OwnFiles::single ? 1 : 2;
  std::vector<std::vector<TensorToWrite>> shards(n_shards);
  JsonWriter index;
  index.begin_object().key("weight_map").begin_object();
  size_t next = 0;
  for (const auto& [name, tensor] : tensors) {
    const size_t shard = next++ % n_shards;
    const auto* data = reinterpret_cast<const std::byte*>(tensor.bytes.data());
    shards[shard].push_back({name, ConstTensorView(data, tensor.dtype, tensor.shape)});
    index.member(name, cat("consolidated-0000", shard + 1, "-of-00002.safetensors"));
  }
  index.end_object().end_object();
  for (size_t i = 0; i < n_shards; ++i) {
    const std::string file = n_shards == 1
                                 ? "consolidated.safetensors"
                                 : cat("consolidated-0000", i + 1, "-of-00002.safetensors");
    std::ofstream(folder / file, std::ios::binary) << safetensors_bytes(shards[i], {});
  }
  if (files == OwnFiles::indexed) {
    std::ofstream(folder / "consolidated.safetensors.index.json") << index.text();
  }
}

}  // namespace fp8kv::test
