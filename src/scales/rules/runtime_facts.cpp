#include "scales/rules/runtime_facts.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/drafts/drafter.h"
#include "checkpoint/layer_name.h"
#include "checkpoint/linear_modules.h"
#include "checkpoint/quant_config.h"
#include "config/values/language_config.h"
#include "scales/rules/model_families.h"
#include "scales/rules/runtime_models.h"
#include "scales/scale_names.h"

namespace fp8kv {
namespace {

// Turns the name of a K scale into the name of its V scale, and back.
std::string partner_of(std::string name) {
  const auto parts = split_layer_name(name);
  const size_t rest = parts ? name.size() - parts->rest.size() : name.size();
  for (size_t at = rest; at < name.size(); ++at) {
    const bool starts_name = name[at - 1] == '.' && at + 1 < name.size() && name[at + 1] == '_';
    if (!starts_name || (name[at] != 'k' && name[at] != 'v')) continue;
    name[at] = name[at] == 'k' ? 'v' : 'k';
  }
  return name;
}

bool is_of_k(std::string_view name) {
  const size_t last = name.rfind('.');
  const std::string_view before = name.substr(0, last);
  return name.substr(last + 1).starts_with("k_") ||
         before.substr(before.rfind('.') + 1).starts_with("k_");
}

void add_tensor(const TensorMap& tensors, const TensorEntry& entry, FactSet& facts) {
  const auto spelling = scale_spelling(entry.name);
  facts.add(Fact::queries, spelling == ScaleSpelling::query);
  if (!spelling || spelling == ScaleSpelling::query) return;
  const bool fused = *spelling == ScaleSpelling::fused;
  const bool paired = *spelling == ScaleSpelling::apart || *spelling == ScaleSpelling::parameter ||
                      *spelling == ScaleSpelling::projection || *spelling == ScaleSpelling::output;
  const bool complete = paired && tensors.contains(partner_of(entry.name));
  facts.add(Fact::scales);
  facts.add(Fact::fused, fused);
  facts.add(Fact::fused_array, fused && entry.shape.rank() > 0);
  facts.add(Fact::per_head, entry.shape.elements() > 1);
  facts.add(Fact::apart, complete && *spelling == ScaleSpelling::apart);
  facts.add(Fact::apart_0d, *spelling == ScaleSpelling::apart && entry.shape.rank() == 0);
  facts.add(Fact::parameters, complete && *spelling == ScaleSpelling::parameter);
  facts.add(Fact::projections, complete && *spelling == ScaleSpelling::projection);
  facts.add(Fact::outputs, complete && *spelling == ScaleSpelling::output);
  facts.add(is_of_k(entry.name) ? Fact::k_only : Fact::v_only, paired && !complete);
}

std::vector<std::string> texts(const std::optional<Json>& list) {
  std::vector<std::string> out;
  for (size_t i = 0; list && list->is_array() && i < list->size(); ++i) {
    if ((*list)[i].is_string()) out.push_back((*list)[i].as_string());
  }
  return out;
}

void add_ignore(const TensorMap& tensors, const Json& block, FactSet& facts) {
  std::vector<std::string> ignore = texts(block.find("ignore"));
  for (const std::string& module : linear_modules(tensors)) {
    // Skips lm_head: runtimes look it up by its tensor, so an `ignore` without it works.
    if (module.ends_with("lm_head")) continue;
    const Ignored found = ignored(ignore, module);
    facts.add(Fact::linear_missed, found == Ignored::no);
    facts.add(Fact::ignore_unclear, found == Ignored::unclear);
  }
  // Linear is a class of layers, and attention does not belong to it.
  std::erase(ignore, "Linear");
  std::vector<std::string> modules = {"model.layers.0.attn"};
  for (const std::string_view stack : {"model.layers.0.", "transformer.h.0."}) {
    for (const std::string_view attention : kAttentionNames) {
      modules.push_back(cat(stack, attention, ".attn"));
    }
  }
  for (const std::string& module : modules) {
    facts.add(Fact::attention_ignored, ignored(ignore, module) == Ignored::yes);
  }
}

bool is_fp8_scheme(const std::optional<Json>& scheme) {
  if (!scheme || !scheme->is_object()) return false;
  const auto type = scheme->find("type");
  const auto bits = scheme->find("num_bits");
  const auto dynamic = scheme->find("dynamic");
  return type && type->is_string() && type->as_string() == "float" && bits && bits->is_number() &&
         bits->number_text() == "8" && !(dynamic && dynamic->is_bool() && dynamic->as_bool());
}

std::string text_at(const std::optional<Json>& object, std::string_view key) {
  const auto value = object ? object->find(key) : std::nullopt;
  return value && value->is_string() ? value->as_string() : "";
}

void add_cache_scheme(const Json& scheme, FactSet& facts) {
  const std::string strategy = text_at(scheme, "strategy");
  const auto symmetric = scheme.find("symmetric");
  facts.add(Fact::cache_scheme);
  facts.add(Fact::attn_head, strategy == "attn_head");
  facts.add(Fact::no_strategy, strategy != "tensor" && strategy != "attn_head");
  facts.add(Fact::not_symmetric, !symmetric || !symmetric->is_bool() || !symmetric->as_bool());
}

void add_compressed_tensors(const TensorMap& tensors, const Json& block, FactSet& facts) {
  const auto groups = block.find("config_groups");
  const std::string status = text_at(block, "quantization_status");
  const auto scheme = block.find("kv_cache_scheme");
  facts.add(Fact::no_groups, !groups || groups->size() == 0);
  facts.add(Fact::frozen, status == "frozen" || status == "compressed");
  if (is_fp8_scheme(scheme)) add_cache_scheme(*scheme, facts);
  add_ignore(tensors, block, facts);
}

void add_modelopt(const QuantConfig& quant, FactSet& facts) {
  const auto inner = quant.hf_quant ? quant.hf_quant->find("quantization") : std::nullopt;
  for (const auto& object : {quant.block, inner}) {
    facts.add(Fact::quant_algo, !text_at(object, "quant_algo").empty());
    facts.add(Fact::cache_scheme, text_at(object, "kv_cache_quant_algo") == "FP8" ||
                                      (object && is_fp8_scheme(object->find("kv_cache_scheme"))));
  }
}

void add_other_method(const QuantConfig& quant, FactSet& facts) {
  const std::string& method = quant.quant_method;
  facts.add(Fact::weights_method, method == "gptq" || method == "awq" || method == "auto-round");
  const std::string packing = text_at(quant.block, "packing_format");
  facts.add(Fact::static_packing, packing == "auto_round:fp8_static");
  facts.add(Fact::block_packing, packing == "auto_round:fp8");
}

Fact fact_of(QuantMethod method) {
  switch (method) {
    case QuantMethod::none:
      return Fact::unquantised;
    case QuantMethod::compressed_tensors:
      return Fact::compressed_tensors;
    case QuantMethod::fp8:
      return Fact::fp8;
    case QuantMethod::modelopt:
      return Fact::modelopt;
    case QuantMethod::quark:
      return Fact::quark;
    case QuantMethod::trtllm:  // these two are not Hugging Face folders
    case QuantMethod::ammo:
    case QuantMethod::other:
      break;
  }
  return Fact::other_method;
}

// Returns false if the config contradicts itself, because then no scales are read.
bool asks_for_nvfp4(const ModelFiles& model) {
  try {
    return read_kv_config(model.config, model.modelopt).stated == KvFormat::nvfp4;
  } catch (const Error&) {
    return false;
  }
}

void add_config(const ModelFiles& model, FactSet& facts) {
  const QuantConfig quant = read_quant_config(model.config, model.modelopt);
  facts.add(fact_of(quant.method));
  facts.add(Fact::nvfp4_scheme, asks_for_nvfp4(model));
  if (quant.method == QuantMethod::compressed_tensors) {
    add_compressed_tensors(model.tensors, *quant.block, facts);
  }
  if (quant.method == QuantMethod::modelopt) add_modelopt(quant, facts);
  if (quant.method == QuantMethod::other) add_other_method(quant, facts);
  const std::string dtype = text_at(model.config, "kv_cache_torch_dtype");
  facts.add(Fact::torch_dtype, dtype == "float8_e4m3fn" || dtype == "float8_e4m3fnuz");
  const std::string type = model_type_of(model.config);
  facts.add(Fact::llama_baichuan_phi3, type == "llama" || type == "baichuan" || type == "phi3");
  const bool drafts = is_drafter(model.tensors);
  if (const ModelFamily* family = find_family(type)) facts.set_family(family->family);
  if (drafts) facts.set_family(Family::drafter);
  const std::vector<std::string> architectures = texts(model.config.find("architectures"));
  const std::string architecture = drafts                  ? kDrafterArchitecture
                                   : architectures.empty() ? ""
                                                           : architectures[0];
  facts.set_model(runtime_model_number(architecture, type));
}

}  // namespace

ModelFiles model_files(const Checkpoint& checkpoint) {
  ModelFiles model{checkpoint.tensors(), checkpoint.config(), checkpoint.hf_quant(), {}};
  drop_draft_scales(model.tensors, model.config);
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint.folder())) {
    model.names.push_back(entry.path().filename().string());
  }
  return model;
}

FactSet runtime_facts(const ModelFiles& model) {
  FactSet facts;
  for (const auto& [name, location] : model.tensors) {
    add_tensor(model.tensors, location.entry, facts);
    facts.add(Fact::fp8_weights, fp8_format(location.entry.dtype).has_value());
  }
  facts.add(Fact::experts, has_experts(model.tensors));
  add_config(model, facts);
  for (const std::string& name : model.names) {
    facts.add(Fact::single_file, name == kSingleFile);
    facts.add(Fact::index, name == kIndexFile);
    facts.add(Fact::consolidated,
              name.starts_with("consolidated") && name.ends_with(".safetensors"));
  }
  return facts;
}

FactSet layer_facts(const ModelFiles& model, FactSet facts, int64_t layer) {
  constexpr FactSet kOfScales = {Fact::scales,      Fact::fused,       Fact::apart,
                                 Fact::parameters,  Fact::projections, Fact::outputs,
                                 Fact::k_only,      Fact::v_only,      Fact::per_head,
                                 Fact::fused_array, Fact::apart_0d};
  FactSet own;
  for (const auto& [name, location] : model.tensors) {
    const auto parts = split_layer_name(name);
    if (parts && parts->layer == layer) add_tensor(model.tensors, location.entry, own);
  }
  return facts.without(kOfScales).with(own);
}

FactSet scale_file_facts(const std::string& model_type) {
  FactSet facts = {Fact::scale_file};
  facts.add(Fact::with_model_type, !model_type.empty());
  // Model types whose class in sglang 0.5.23 (srt/models) has load_kv_cache_scales, directly or by
  // inheritance.
  constexpr std::string_view kLoaders[] = {
      "apertus",        "arcee", "exaone4",     "glm4",  "hunyuan", "hunyuan_v1_dense",
      "hunyuan_v1_moe", "llama", "llama4_text", "mimo",  "mimo_v2", "ministral3",
      "mistral",        "opt",   "phi3",        "qwen2", "qwen3",   "solar"};
  facts.add(Fact::scale_file_loader,
            std::find(std::begin(kLoaders), std::end(kLoaders), model_type) != std::end(kLoaders));
  return facts;
}

}  // namespace fp8kv
