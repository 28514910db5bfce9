#include "checkpoint/files/mistral_names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"

namespace fp8kv {
namespace {

// The two names of a module in a layer; '#' stands for the number of an expert.
struct Names {
  std::string_view own;
  std::string_view hf;
};

constexpr Names kModules[] = {
    {"attention_norm", "input_layernorm"},
    {"attention.wq", "self_attn.q_proj"},
    {"attention.wk", "self_attn.k_proj"},
    {"attention.wv", "self_attn.v_proj"},
    {"attention.wq_a", "self_attn.q_a_proj"},
    {"attention.q_a_norm", "self_attn.q_a_layernorm"},
    {"attention.wq_b", "self_attn.q_b_proj"},
    {"attention.wkv_a_with_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"attention.kv_a_norm", "self_attn.kv_a_layernorm"},
    {"attention.wkv_b", "self_attn.kv_b_proj"},
    {"attention.wo", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"feed_forward.w1", "mlp.gate_proj"},
    {"feed_forward.w2", "mlp.down_proj"},
    {"feed_forward.w3", "mlp.up_proj"},
    {"feed_forward.gate", "block_sparse_moe.gate"},  // Mixtral, like the next three
    {"feed_forward.experts.#.w1", "block_sparse_moe.experts.#.w1"},
    {"feed_forward.experts.#.w2", "block_sparse_moe.experts.#.w2"},
    {"feed_forward.experts.#.w3", "block_sparse_moe.experts.#.w3"},
    {"gate", "mlp.gate"},
    {"experts.#.w1", "mlp.experts.#.gate_proj"},
    {"experts.#.w2", "mlp.experts.#.down_proj"},
    {"experts.#.w3", "mlp.experts.#.up_proj"},
    {"shared_experts.w1", "mlp.shared_experts.gate_proj"},
    {"shared_experts.w2", "mlp.shared_experts.down_proj"},
    {"shared_experts.w3", "mlp.shared_experts.up_proj"}};
constexpr Names kOuter[] = {
    {"tok_embeddings", "model.embed_tokens"}, {"norm", "model.norm"}, {"output", "lm_head"}};
constexpr Names kEndings[] = {{".weight", ".weight"},
                              {".bias", ".bias"},
                              {".qscale_weight", ".weight_scale"},
                              {".qscale_act", ".input_scale"}};
// Scales of the cache, as vLLM reads them.
constexpr Names kCacheScales[] = {
    {"attention.q_fake_quantizer.qscale_act", "self_attn.attn.q_scale"},
    {"attention.k_fake_quantizer.qscale_act", "self_attn.k_scale"},
    {"attention.v_fake_quantizer.qscale_act", "self_attn.v_scale"},
    {"attention.kv_fake_quantizer.qscale_act", "self_attn.kv_scale"}};
constexpr Names kLayerPrefixes = {"layers.", "model.layers."};

using Side = std::string_view Names::*;

bool is_decimal(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The text in which `to` has the number that `name` has at the '#' of `from`; nullopt if `name`
// does not fit `from`.
std::optional<std::string> renamed(std::string_view name, std::string_view from,
                                   std::string_view to) {
  const size_t at = from.find('#');
  if (at == from.npos) return name == from ? std::optional(std::string(to)) : std::nullopt;
  const std::string_view before = from.substr(0, at), after = from.substr(at + 1);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) ||
      !name.ends_with(after)) {
    return std::nullopt;
  }
  const std::string_view number =
      name.substr(before.size(), name.size() - before.size() - after.size());
  if (!is_decimal(number)) return std::nullopt;
  return cat(to.substr(0, to.find('#')), number, to.substr(to.find('#') + 1));
}

template <size_t n>
std::optional<std::string> renamed_with_ending(std::string_view name, const Names (&modules)[n],
                                               Side from, Side to) {
  for (const Names& ending : kEndings) {
    if (!name.ends_with(ending.*from)) continue;
    const std::string_view module = name.substr(0, name.size() - (ending.*from).size());
    for (const Names& row : modules) {
      if (const auto found = renamed(module, row.*from, row.*to)) return cat(*found, ending.*to);
    }
  }
  return std::nullopt;
}

std::optional<std::string> other_name(std::string_view name, Side from, Side to) {
  if (const auto outer = renamed_with_ending(name, kOuter, from, to)) return outer;
  if (!name.starts_with(kLayerPrefixes.*from)) return std::nullopt;
  const std::string_view behind = name.substr((kLayerPrefixes.*from).size());
  const size_t dot = behind.find('.');
  if (dot == behind.npos || !is_decimal(behind.substr(0, dot))) return std::nullopt;
  const std::string_view rest = behind.substr(dot + 1);
  std::optional<std::string> inner = renamed_with_ending(rest, kModules, from, to);
  for (const Names& row : kCacheScales) {
    if (!inner) inner = renamed(rest, row.*from, row.*to);
  }
  if (!inner) return std::nullopt;
  return cat(kLayerPrefixes.*to, behind.substr(0, dot), ".", *inner);
}

}  // namespace

std::optional<std::string> name_in_transformers(std::string_view own, std::string_view prefix) {
  const auto found = other_name(own, &Names::own, &Names::hf);
  return found ? std::optional(cat(prefix, *found)) : std::nullopt;
}

std::string name_in_mistral(std::string_view name) {
  constexpr std::string_view kInside = "language_model.";
  const std::string_view inner = name.starts_with(kInside) ? name.substr(kInside.size()) : name;
  return other_name(inner, &Names::hf, &Names::own).value_or(std::string(name));
}

bool is_of_images(std::string_view own) {
  constexpr std::string_view kParts[] = {"vision_encoder.", "vision_language_adapter.",
                                         "patch_merger.", "pre_mm_projector_norm."};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return own.starts_with(part); });
}

RowOrder row_order_of(const TensorEntry& entry, const Json& text) {
  const bool of_q = entry.name.find(".self_attn.q_proj.") != std::string::npos;
  const bool of_k = entry.name.find(".self_attn.k_proj.") != std::string::npos;
  const bool is_scale = entry.name.ends_with(".weight_scale");
  if ((!of_q && !of_k) || (!is_scale && !entry.name.ends_with(".weight"))) return {};
  const int64_t head_dim = text.at("head_dim").as_int();
  const int64_t heads = text.at(of_q ? "num_attention_heads" : "num_key_value_heads").as_int();
  if (is_scale && entry.shape.elements() == 1) return {};
  // A matrix of another shape is refused by whoever reads it.
  const bool fits = head_dim > 0 && head_dim % 2 == 0 && entry.shape.rank() > 0 &&
                    entry.shape[0] % head_dim == 0 && entry.shape[0] / head_dim == heads;
  if (fits) return {head_dim, (entry.end - entry.begin) / static_cast<uint64_t>(entry.shape[0])};
  if (!is_scale) return {};
  throw Error(
      cat("tensor ", quote(name_in_mistral(entry.name)), ": has the shape ", entry.shape.text(),
          ", expected one scale, or one for each of ", heads, " x ", head_dim, " rows"),
      "other scales of Q and K are not supported in Mistral's format");
}

}  // namespace fp8kv
