#include "scales/rules/tables/fact.h"

#include <array>
#include <cstddef>

namespace fp8kv {
namespace {

struct NamedFact {
  Fact fact;
  const char* name;
};

constexpr std::array<NamedFact, static_cast<size_t>(Fact::count)> kNames = {{
    {Fact::scales, "scales"},
    {Fact::fused, "fused"},
    {Fact::apart, "apart"},
    {Fact::parameters, "parameters"},
    {Fact::projections, "projections"},
    {Fact::outputs, "outputs"},
    {Fact::k_only, "k_only"},
    {Fact::v_only, "v_only"},
    {Fact::per_head, "per_head"},
    {Fact::fused_array, "fused_array"},
    {Fact::apart_0d, "apart_0d"},
    {Fact::queries, "queries"},
    {Fact::unquantised, "unquantised"},
    {Fact::compressed_tensors, "compressed_tensors"},
    {Fact::fp8, "fp8"},
    {Fact::modelopt, "modelopt"},
    {Fact::quark, "quark"},
    {Fact::other_method, "other_method"},
    {Fact::no_groups, "no_groups"},
    {Fact::frozen, "frozen"},
    {Fact::cache_scheme, "cache_scheme"},
    {Fact::nvfp4_scheme, "nvfp4_scheme"},
    {Fact::attn_head, "attn_head"},
    {Fact::no_strategy, "no_strategy"},
    {Fact::not_symmetric, "not_symmetric"},
    {Fact::linear_missed, "linear_missed"},
    {Fact::attention_ignored, "attention_ignored"},
    {Fact::ignore_unclear, "ignore_unclear"},
    {Fact::quant_algo, "quant_algo"},
    {Fact::weights_method, "weights_method"},
    {Fact::static_packing, "static_packing"},
    {Fact::block_packing, "block_packing"},
    {Fact::fp8_weights, "fp8_weights"},
    {Fact::experts, "experts"},
    {Fact::torch_dtype, "torch_dtype"},
    {Fact::llama_baichuan_phi3, "llama_baichuan_phi3"},
    {Fact::single_file, "single_file"},
    {Fact::index, "index"},
    {Fact::consolidated, "consolidated"},
    {Fact::scale_file, "scale_file"},
    {Fact::with_model_type, "with_model_type"},
    {Fact::scale_file_loader, "scale_file_loader"},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i].fact != static_cast<Fact>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "every Fact has a name, in the order of the enumerators");

}  // namespace

const char* fact_name(Fact fact) {
  return kNames[static_cast<size_t>(fact)].name;
}

std::vector<std::string> FactSet::names() const {
  std::vector<std::string> names;
  for (const NamedFact& each : kNames) {
    if (has(each.fact)) names.push_back(each.name);
  }
  if (family_ != Family::other) names.push_back(family_name(family_));
  return names;
}

}  // namespace fp8kv
