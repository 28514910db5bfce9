// Facts about a folder with KV scales, one bit each.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "scales/rules/tables/family.h"

namespace fp8kv {

enum class Fact : uint8_t {
  // Names and shapes of the scale tensors.
  scales,
  fused,        // self_attn.kv_scale; self_attn stands for any name of the attention
  apart,        // self_attn.k_scale and v_scale
  parameters,   // self_attn.attn.k_scale and v_scale
  projections,  // self_attn.k_proj.k_scale and v_proj.v_scale
  outputs,      // self_attn.k_proj.output_scale and v_proj.output_scale
  k_only,       // a scale of K without its partner for V
  v_only,
  per_head,     // more than one number per tensor
  fused_array,  // a kv_scale whose shape is not []
  apart_0d,     // a k_scale or v_scale of shape []
  queries,      // self_attn.q_scale, attn.q_scale or q_proj.q_scale
  // The quantisation method of the config. Exactly one of these holds for a folder.
  unquantised,
  compressed_tensors,
  fp8,
  modelopt,
  quark,
  other_method,
  // Details of that config.
  no_groups,          // compressed-tensors: no group of quantised layers
  frozen,             // its quantization_status is "frozen" or "compressed"
  cache_scheme,       // it asks for an FP8 cache
  nvfp4_scheme,       // it asks for an NVFP4 cache
  attn_head,          // with one scale per head
  no_strategy,        // compressed-tensors: without the strategy "tensor" or "attn_head"
  not_symmetric,      // compressed-tensors: without `symmetric: true`
  linear_missed,      // `ignore` leaves out a linear layer
  attention_ignored,  // `ignore` covers an attention module
  ignore_unclear,     // `ignore` has an expression that fp8kv cannot parse
  quant_algo,         // ModelOpt: the config names the algorithm of the weights
  weights_method,     // gptq, awq or auto-round: methods that know weights alone
  static_packing,     // AutoRound: the weights are packed as auto_round:fp8_static
  block_packing,      // AutoRound: the weights are packed as auto_round:fp8
  fp8_weights,        // some tensor is FP8
  // Other facts about the folder.
  experts,
  torch_dtype,  // kv_cache_torch_dtype is float8_e4m3fn or float8_e4m3fnuz
  llama_baichuan_phi3,
  // The files in the folder.
  single_file,   // model.safetensors is there
  index,         // model.safetensors.index.json is there
  consolidated,  // consolidated*.safetensors are there
  // A JSON file of scales in place of a folder.
  scale_file,
  with_model_type,
  scale_file_loader,  // SGLang reads scale files into models of this model_type
  count
};

// The name of a fact in JSON: "apart".
const char* fact_name(Fact fact);

class FactSet {
 public:
  constexpr FactSet() = default;
  constexpr FactSet(std::initializer_list<Fact> facts) {
    for (const Fact fact : facts) add(fact);
  }
  constexpr void add(Fact fact, bool holds = true) {
    if (holds) bits_ |= uint64_t{1} << static_cast<unsigned>(fact);
  }
  constexpr bool has(Fact fact) const { return bits_ >> static_cast<unsigned>(fact) & 1; }
  constexpr bool has_all(FactSet others) const { return (bits_ & others.bits_) == others.bits_; }
  constexpr bool has_any(FactSet others) const { return (bits_ & others.bits_) != 0; }
  // These facts without `others`, and these facts together with `others`.
  constexpr FactSet without(FactSet others) const { return of(bits_ & ~others.bits_); }
  constexpr FactSet with(FactSet others) const { return of(bits_ | others.bits_); }
  // The names of the facts in the order of the enumerators, then the family if it is known.
  std::vector<std::string> names() const;
  // The model's row in runtime_models.h (0: none) and its family. Combining two sets keeps those of
  // the left one.
  constexpr uint8_t model() const { return model_; }
  constexpr void set_model(uint8_t number) { model_ = number; }
  constexpr Family family() const { return family_; }
  constexpr void set_family(Family family) { family_ = family; }
  bool operator==(const FactSet&) const = default;

 private:
  // The given bits, with this set's model and family.
  constexpr FactSet of(uint64_t bits) const {
    FactSet facts = *this;
    facts.bits_ = bits;
    return facts;
  }

  static_assert(static_cast<unsigned>(Fact::count) <= 64);
  uint64_t bits_ = 0;
  uint8_t model_ = 0;
  Family family_ = Family::other;
};

}  // namespace fp8kv
