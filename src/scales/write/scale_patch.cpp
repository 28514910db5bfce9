#include "scales/write/scale_patch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "checkpoint/drafts/draft_layers.h"
#include "checkpoint/hf_quant.h"
#include "checkpoint/layer_name.h"
#include "checkpoint/linear_modules.h"
#include "config/values/language_config.h"
#include "files/file.h"
#include "json/json.h"
#include "scales/rules/model_families.h"
#include "scales/scale_file.h"
#include "scales/scale_names.h"
#include "scales/write/draft_tensors.h"
#include "scales/write/quant_block.h"

namespace fp8kv {
namespace {

constexpr const char* kOnlyShard = "model-00001-of-00001.safetensors";

bool all_ones(const KvScales& scales) {
  return std::all_of(scales.layers.begin(), scales.layers.end(), [](const LayerScales& layer) {
    const auto is_one = [](float scale) { return scale == 1; };
    return std::all_of(layer.k.begin(), layer.k.end(), is_one) &&
           std::all_of(layer.v.begin(), layer.v.end(), is_one);
  });
}

// How a target fits a model: decided by the model's own config.
struct Placement {
  QuantConfig quant;  // the model's; none if its block only serves the cache and is replaced
  Naming naming;
  bool per_head = false;
  bool compressed_tensors = false;  // the result has a config of compressed-tensors
  bool nvfp4 = false;               // the scales are for an NVFP4 cache
  bool replaces_block = false;
};

[[noreturn]] void refuse(const Checkpoint& checkpoint, const InjectTarget& target,
                         const std::string& what, const std::string& reason) {
  throw Error(cat(quote(checkpoint.folder().string()), ": ", what, ", and cannot take scales for ",
                  quote(target.name), ": ", reason),
              "inject into the unquantised model, or write a scale file, the target 'json'");
}

void check_fp8_form(const Checkpoint& checkpoint, const InjectTarget& target,
                    const std::string& stack) {
  if (has_experts(checkpoint.tensors())) {
    refuse(checkpoint, target, "has experts",
           "vLLM 0.6 to 0.10 quantises them, whatever is to be left out");
  }
  if (stack != "model.layers.") {
    refuse(checkpoint, target, cat("calls its layers ", quote(stack.substr(0, stack.size() - 1))),
           "every linear layer must be listed by the name that vLLM has for it, which is only "
           "known for 'model.layers'");
  }
}

// Throws unless the config can have ModelOpt's form, the only one that asks for an NVFP4 cache.
void check_nvfp4_form(const Checkpoint& checkpoint, const InjectTarget& target,
                      const QuantConfig& quant) {
  const auto refuse_nvfp4 = [&](const std::string& reason, const std::string& help) {
    throw Error(cat(quote(checkpoint.folder().string()), ": cannot take scales of NVFP4 for ",
                    quote(target.name), ": ", reason),
                help);
  };
  if (!target.nvfp4) {
    refuse_nvfp4(cat(target.runtime, " has no NVFP4 cache that reads scales"),
                 "write them for vLLM, with --for vllm");
  }
  if (quant.method != QuantMethod::none && quant.method != QuantMethod::modelopt) {
    refuse_nvfp4(cat("it is quantised by ", quote(quant.name()),
                     ", and only a config of ModelOpt asks vLLM for an NVFP4 cache"),
                 "inject into the unquantised model, or write a scale file, the target 'json'");
  }
  const std::string type = model_type_of(checkpoint.config());
  const ModelFamily* family = find_family(type);
  if (!family || !family->one_matrix) return;
  refuse_nvfp4(cat("they stand beside k_proj and v_proj, which ", type, " does not have"),
               "write a scale file, the target 'json', for 'fp8kv run' and 'fp8kv eval'");
}

Naming naming_of(const Checkpoint& checkpoint, const InjectTarget& target, QuantMethod method) {
  const bool own_block = method == QuantMethod::none;
  Naming naming;
  naming.fused = target.fused && (own_block || !target.apart);
  if (!target.apart) return naming;
  const bool compressed = own_block || method == QuantMethod::compressed_tensors;
  const std::string type = model_type_of(checkpoint.config());
  const ModelFamily* family = find_family(type);
  const bool one_matrix = family && family->one_matrix;
  const bool by_family =
      target.portable || (one_matrix && target.block == InjectTarget::Block::compressed_tensors);
  if (method == QuantMethod::modelopt) {
    if (one_matrix) {
      refuse(checkpoint, target, cat("is a ", type, " quantised by 'modelopt'"),
             "ModelOpt puts scales beside k_proj and v_proj, which this family does not have");
    }
    naming.projections = true;
  } else if (!by_family || !compressed) {
    naming.apart = true;
  } else {
    const PortableNames names = portable_names(type);
    naming.apart = names == PortableNames::both || names == PortableNames::apart;
    naming.parameters = names == PortableNames::both || names == PortableNames::parameters;
    naming.projections = names == PortableNames::projections;
  }
  return naming;
}

// Throws if another tool's block stands beside ModelOpt's own file. That file stays, so the folder
// would describe the same scales in two ways.
void check_one_producer(const QuantConfig& quant) {
  if (!quant.hf_quant || !quant.block || quant.method == QuantMethod::modelopt) return;
  throw Error(cat(quant.hf_quant->where(), ": is ModelOpt's, but ", quant.block->where(),
                  ": is of quant_method ", quote(quant.name())),
              "the two are of different checkpoints: remove the one that is not this one's");
}

Placement placement_in(const Checkpoint& checkpoint, const InjectTarget& target,
                       const std::string& stack, bool replace, const KvScales& scales) {
  Placement placement;
  placement.nvfp4 = is_nvfp4(scales.format);
  placement.quant = read_quant_config(checkpoint);
  check_one_producer(placement.quant);
  placement.replaces_block = replace && is_for_cache_alone(placement.quant, checkpoint.tensors());
  if (placement.replaces_block) placement.quant = {};
  const QuantMethod method = placement.quant.method;
  if (placement.nvfp4) {
    check_nvfp4_form(checkpoint, target, placement.quant);
    placement.naming.projections = true;
    return placement;
  }
  const std::string reason = why_refused(target, method);
  if (!reason.empty()) {
    refuse(checkpoint, target, cat("is quantised by ", quote(placement.quant.name())), reason);
  }
  const bool own_block = method == QuantMethod::none;
  if (own_block && target.block == InjectTarget::Block::fp8) {
    check_fp8_form(checkpoint, target, stack);
  }
  placement.naming = naming_of(checkpoint, target, method);
  placement.compressed_tensors = own_block ? target.block == InjectTarget::Block::compressed_tensors
                                           : method == QuantMethod::compressed_tensors;
  placement.per_head = scales.per_head() && target.per_head && placement.compressed_tensors;
  return placement;
}

// Throws if the resulting configs ask for a cache of another type than the scales.
void check_states_cache(const Checkpoint& checkpoint,
                        const std::map<std::string, std::string>& files, bool nvfp4) {
  const auto parsed = [&](const std::string& name, const std::string& text) {
    return Json::parse(text, quote((checkpoint.folder() / name).string()), JsonNumbers::python);
  };
  std::optional<Json> hf_quant = checkpoint.hf_quant();
  if (const auto it = files.find(kModelOptFile); it != files.end()) {
    hf_quant = parsed(it->first, it->second);
  }
  const KvConfig config = read_kv_config(parsed("config.json", files.at("config.json")), hf_quant);
  const KvFormat expected = nvfp4 ? KvFormat::nvfp4 : KvFormat::e4m3fn;
  if (config.statement.empty() || config.stated == expected) return;
  throw Error(cat(config.statement, ", expected an ", nvfp4 ? "NVFP4" : "FP8", " cache"),
              cat("these scales are for ", nvfp4 ? "NVFP4" : "FP8",
                  "; inject into the model this one was made from"));
}

// The configs of a folder with NVFP4 scales, by name.
std::map<std::string, std::string> nvfp4_configs(const Checkpoint& checkpoint,
                                                 const Placement& placement) {
  std::map<std::string, std::string> files;
  if (placement.quant.method == QuantMethod::modelopt) {
    files = with_cache_scales(checkpoint, placement.quant, CacheScheme::nvfp4);
  }
  std::string& config = files["config.json"];
  if (config.empty()) config = read_regular_text(checkpoint.config_path());
  for (const char* gone : {"kv_cache_torch_dtype", "compression_config"}) {
    config = json_without_member(config, gone);
  }
  if (placement.quant.method == QuantMethod::none) {
    config = json_with_member(config, "quantization_config", modelopt_nvfp4_block());
  }
  return files;
}

// The configs of the output, by name.
std::map<std::string, std::string> new_configs(const Checkpoint& checkpoint,
                                               const InjectTarget& target,
                                               const Placement& placement) {
  std::map<std::string, std::string> files;
  switch (placement.quant.method) {
    case QuantMethod::compressed_tensors:
    case QuantMethod::fp8:
    case QuantMethod::modelopt:
      files = with_cache_scales(checkpoint, placement.quant,
                                placement.per_head ? CacheScheme::fp8_per_head : CacheScheme::fp8);
      break;
    case QuantMethod::none:
    case QuantMethod::quark:
    case QuantMethod::trtllm:
    case QuantMethod::ammo:
    case QuantMethod::other:
      break;  // these configs stay as they are
  }
  std::string& config = files["config.json"];
  if (config.empty()) config = read_regular_text(checkpoint.config_path());
  config = json_with_member(config, "kv_cache_torch_dtype",
                            cat('"', format_name(KvFormat::e4m3fn), '"'));
  if (placement.quant.method != QuantMethod::none) return files;
  if (placement.replaces_block) config = json_without_member(config, "compression_config");
  switch (target.block) {
    case InjectTarget::Block::none:
      if (placement.replaces_block) config = json_without_member(config, "quantization_config");
      break;
    case InjectTarget::Block::compressed_tensors:
      config = json_with_member(config, "quantization_config",
                                compressed_tensors_block(checkpoint.tensors(), placement.per_head));
      break;
    case InjectTarget::Block::fp8:
      config = json_with_member(config, "quantization_config", fp8_block(checkpoint.tensors()));
      break;
  }
  return files;
}

std::map<std::string, std::string> config_files(const Checkpoint& checkpoint,
                                                const InjectTarget& target,
                                                const Placement& placement) {
  std::map<std::string, std::string> files = placement.nvfp4
                                                 ? nvfp4_configs(checkpoint, placement)
                                                 : new_configs(checkpoint, target, placement);
  check_states_cache(checkpoint, files, placement.nvfp4);
  return files;
}

// The number of layers whose K and V scales differ, so that one shared number cannot stand for
// both.
size_t layers_apart(const KvScales& scales) {
  return static_cast<size_t>(
      std::count_if(scales.layers.begin(), scales.layers.end(), [](const LayerScales& layer) {
        return layer.has_cache() && largest(layer.k) != largest(layer.v);
      }));
}

std::vector<std::string> notes_on_values(const KvScales& scales, const InjectTarget& target,
                                         const Placement& placement) {
  std::vector<std::string> notes;
  if (!placement.nvfp4 && kv_range(scales.format).fnuz) {
    notes.push_back("scales for E4M3FNUZ were halved to those for E4M3FN");
  }
  if (scales.per_head() && !placement.per_head) {
    notes.push_back(cat(
        "the scales of ", scales.scales_per_layer(), " KV heads were reduced to their maximum: ",
        placement.nvfp4 ? std::string("an NVFP4 cache") : target.runtime, " has one per layer",
        target.per_head && !placement.nvfp4 ? cat(" beside ", quote(placement.quant.name())) : ""));
  }
  const size_t apart = placement.naming.tells_k_from_v() ? 0 : layers_apart(scales);
  if (apart > 0) {
    notes.push_back(cat(
        "K and V share one scale, the larger of the two: ", count_of(apart, "layer"), " had two"));
  }
  if (scales.provenance.observation == Observation::before_rope) {
    notes.push_back(
        "K was observed before RoPE, but is cached after it, where a value can be up to 1.41 times "
        "as large and then saturates");
  }
  if (all_ones(scales)) {
    notes.push_back("every scale is 1, which is also what runtimes use when there is none");
  }
  return notes;
}

// The checkpoint's files that get a new name in the output.
std::map<std::string, std::string> renamed_files(const Checkpoint& checkpoint,
                                                 const Placement& placement) {
  const std::vector<Shard>& shards = checkpoint.shards();
  const bool has_single = std::any_of(shards.begin(), shards.end(),
                                      [](const Shard& shard) { return shard.file == kSingleFile; });
  if (!placement.compressed_tensors || !has_single) return {};
  if (std::filesystem::exists(checkpoint.folder() / kOnlyShard)) {
    throw Error(cat(quote((checkpoint.folder() / kOnlyShard).string()), ": stands in the way of ",
                    quote(kSingleFile), ", which is to get that name"),
                "keep the one of the two that holds the model");
  }
  return {{kSingleFile, kOnlyShard}};
}

std::vector<std::string> notes_on_form(const Checkpoint& checkpoint, const InjectTarget& target,
                                       const Placement& placement, const ScalePatch& patch) {
  std::vector<std::string> notes;
  const size_t dropped = patch.changes.dropped.size();
  if (dropped > 0) {
    notes.push_back(cat(count_of(dropped, "scale tensor"), " of the model ",
                        dropped == 1 ? "was" : "were", " replaced"));
  }
  const bool had_q = std::any_of(
      patch.changes.dropped.begin(), patch.changes.dropped.end(),
      [](const std::string& name) { return scale_spelling(name) == ScaleSpelling::query; });
  if (had_q && !patch.has_q) {
    notes.push_back(
        "scales of Q are among them, and no new ones were written: --q-scales writes some");
  }
  if (target.fused && !placement.naming.fused) {
    notes.push_back(cat("kv_scale is left out: beside the config of ",
                        quote(placement.quant.name()), " vLLM would take it for K's"));
  }
  for (const auto& [from, to] : patch.changes.renamed) {
    notes.push_back(cat(from, " is called ", to, ": beside a ", from,
                        " transformers ignores the index, and would run with scales that nobody "
                        "set"));
  }
  if (!checkpoint.index() && patch.changes.renamed.empty()) {
    notes.push_back(
        "transformers prefers model.safetensors and so ignores the index and the scales: there the "
        "model works as before");
  }
  return notes;
}

// The scale file for the metadata. "" if it would not explain the tensors: scales without maxima,
// or one number for K and V.
std::string evidence_of(const KvScales& scales, const Placement& placement) {
  const bool known = !scales.provenance.amax.empty() && placement.naming.tells_k_from_v();
  return known ? scale_file_text(scales) : "";
}

}  // namespace

ScalePatch make_patch(const Checkpoint& checkpoint, const KvScales& scales,
                      const InjectTarget& target, bool replace) {
  FP8KV_ASSERT(!target.is_file);
  const AttentionName attention = attention_of(checkpoint, scales);
  const Placement placement = placement_in(checkpoint, target, attention.stack, replace, scales);
  const KvScales converted = with_format(scales, stored_format(scales.format));
  const KvScales written = placement.per_head ? converted : per_tensor(converted);
  std::vector<ScaleToWrite> named = scales_to_write(written, attention, placement.naming);
  for (DraftTensor& draft : draft_tensors(checkpoint, written, target)) {
    named.push_back({std::move(draft.name), std::move(draft.values)});
  }

  ScalePatch patch;
  if (replace) patch.changes.dropped = kv_scale_names(checkpoint);
  patch.changes.renamed = renamed_files(checkpoint, placement);
  patch.files = config_files(checkpoint, target, placement);
  const Shape of_one = placement.per_head             ? Shape{1, 1, 1}  // a layer with one head
                       : placement.compressed_tensors ? Shape{1}
                                                      : Shape{};
  patch.files[kScaleShard] =
      shard_bytes(named, of_one, scales.provenance, evidence_of(converted, placement));
  patch.has_q = has_q_scales(written);
  patch.files[kIndexFile] = index_text(checkpoint, patch.changes, named);
  patch.notes = notes_on_values(scales, target, placement);
  for (std::string& note : drafts_left_out(checkpoint, scales, target)) {
    patch.notes.push_back(std::move(note));
  }
  for (std::string& note : notes_on_form(checkpoint, target, placement, patch)) {
    patch.notes.push_back(std::move(note));
  }
  return patch;
}

}  // namespace fp8kv
