#include "scales/write/scale_patch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "checkpoint/draft_layers.h"
#include "checkpoint/layer_name.h"
#include "checkpoint/linear_modules.h"
#include "files/file.h"
#include "json/json.h"
#include "scales/rules/model_families.h"
#include "scales/scale_names.h"
#include "scales/write/draft_tensors.h"
#include "scales/write/quant_block.h"

namespace fp8kv {
namespace {

constexpr const char* kOnlyShard = "model-00001-of-00001.safetensors";

// What a model calls its attention: "model.layers." and "self_attn.", "transformer.h." and "attn.".
struct AttentionName {
  std::string stack;  // before the layer's number
  std::string block;  // behind it
  auto operator<=>(const AttentionName&) const = default;

  std::string at(size_t layer) const { return cat(stack, layer, ".", block); }
};

// The block of a K projection's name, or "".
std::string block_of_k(std::string_view rest) {
  constexpr std::string_view kProjections[] = {
      "k_proj.", "qkv_proj.",          "W_pack.", "c_attn.", "query_key_value.",
      "wqkv.",   "kv_a_proj_with_mqa."};  // what a latent is made by: DeepSeek
  const auto name = in_attention(rest);
  const bool of_k = name && std::any_of(std::begin(kProjections), std::end(kProjections),
                                        [&](std::string_view k) { return name->starts_with(k); });
  return of_k ? std::string(rest.substr(0, rest.size() - name->size())) : "";
}

// The one stack of layers with a K projection wherever there are scales to put.
AttentionName attention_of(const Checkpoint& checkpoint, const KvScales& scales) {
  const std::vector<DraftLayer> drafts =
      find_draft_layers(checkpoint.tensors(), checkpoint.config());
  std::map<AttentionName, std::set<size_t>> stacks;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (draft_of(drafts, name) < drafts.size()) continue;
    const auto parts = split_layer_name(name);
    const std::string block = parts ? block_of_k(parts->rest) : "";
    if (block.empty()) continue;
    stacks[{cat(parts->prefix, parts->layers), block}].insert(static_cast<size_t>(parts->layer));
  }
  const std::string folder = quote(checkpoint.folder().string());
  const auto missing_in = [&](const std::set<size_t>& stack) {
    std::vector<size_t> missing;
    for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
      if (scales.layers[layer].has_cache() && !stack.contains(layer)) missing.push_back(layer);
    }
    return missing;
  };
  const size_t all = stacks.size();
  if (all > 1) {
    std::erase_if(stacks, [&](const auto& stack) { return !missing_in(stack.second).empty(); });
  }
  if (stacks.size() != 1) {
    fail(folder, ": has ", all == 0 ? "no" : cat(all),
         " stacks of layers with K projections, such as *.layers.N.self_attn.k_proj.*, expected "
         "one");
  }
  const auto& [name, found] = *stacks.begin();
  const std::vector<size_t> missing = missing_in(found);
  if (missing.empty()) return name;
  fail(folder, ": has no K projection in ", layer_list(missing), " of ",
       quote(name.stack.substr(0, name.stack.size() - 1)), ", where there are scales to put");
}

struct NamedScale {
  std::string name;
  std::vector<float> values;  // one, or one per KV head
};

// Which tensors a layer gets.
struct Naming {
  bool fused = false;        // kv_scale
  bool apart = false;        // k_scale and v_scale
  bool parameters = false;   // attn.k_scale and attn.v_scale
  bool projections = false;  // k_proj.k_scale and v_proj.v_scale

  bool tells_k_from_v() const { return apart || parameters || projections; }
};

// In the order of layers; none for those without a cache.
std::vector<NamedScale> named_scales(const KvScales& scales, const AttentionName& attention,
                                     const Naming& naming) {
  std::vector<NamedScale> named;
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    if (!scales.layers[layer].has_cache()) continue;
    const std::string at = attention.at(layer);
    const auto& [k, v] = scales.layers[layer];
    if (naming.fused) named.push_back({at + "kv_scale", {fused_scale(scales.layers[layer])}});
    const auto add = [&](bool wanted, const char* of_k, const char* of_v) {
      if (!wanted) return;
      named.push_back({at + of_k, k});
      named.push_back({at + of_v, v});
    };
    add(naming.apart, "k_scale", "v_scale");
    add(naming.parameters, "attn.k_scale", "attn.v_scale");
    add(naming.projections, "k_proj.k_scale", "v_proj.v_scale");
  }
  return named;
}

std::string shard_bytes(const std::vector<NamedScale>& scales, const Shape& shape_of_one,
                        const Provenance& from) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, values] : scales) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    const auto heads = static_cast<int64_t>(values.size());
    const Shape shape = heads > 1 ? Shape{heads, 1, 1} : shape_of_one;
    tensors.push_back({name, ConstTensorView(bytes, DType::f32, shape)});
  }
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  const std::string observation = observation_name(from.observation);
  if (!observation.empty()) metadata[kObservationKey] = observation;
  if (!from.accepted_foreign.empty()) metadata[kAcceptedForeignKey] = from.accepted_foreign;
  return safetensors_bytes(tensors, metadata);
}

using Names = std::set<std::string>;

uint64_t bytes_of(const Checkpoint& checkpoint, const Names& dropped, bool of_dropped) {
  uint64_t total = 0;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (dropped.contains(name) != of_dropped) continue;
    total += location.entry.end - location.entry.begin;
  }
  return total;
}

// Bytes of all tensors, as the index counted them where it did.
int64_t total_size(const Checkpoint& checkpoint, const Names& dropped, uint64_t added) {
  const auto metadata = checkpoint.index() ? checkpoint.index()->find("metadata") : std::nullopt;
  const auto counted = metadata ? metadata->find("total_size") : std::nullopt;
  if (!counted) return static_cast<int64_t>(bytes_of(checkpoint, dropped, false) + added);
  const auto gone = static_cast<int64_t>(bytes_of(checkpoint, dropped, true));
  int64_t total = 0;
  if (__builtin_add_overflow(counted->as_int(), static_cast<int64_t>(added) - gone, &total) ||
      total < 0) {
    fail(counted->where(), ": is ", counted->brief(), ", expected the bytes of all tensors");
  }
  return total;
}

// In the format of Hugging Face's writers: names in order, two spaces, a newline at the end.
std::string index_text(const Checkpoint& checkpoint, const ScalePatch& patch,
                       const std::vector<NamedScale>& scales) {
  const Names dropped(patch.dropped.begin(), patch.dropped.end());
  std::map<std::string, std::string> files;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (dropped.contains(name)) continue;
    const std::string& file = checkpoint.shards()[location.shard].file;
    const auto renamed = patch.renamed.find(file);
    files[name] = renamed == patch.renamed.end() ? file : renamed->second;
  }
  uint64_t added = 0;
  for (const NamedScale& scale : scales) {
    files[scale.name] = kScaleShard;
    added += scale.values.size() * sizeof(float);
  }

  JsonWriter out;
  out.begin_object().key("metadata").begin_object();
  const std::optional<Json>& old = checkpoint.index();
  if (const auto metadata = old ? old->find("metadata") : std::nullopt) {
    if (!metadata->is_object()) {
      fail(metadata->where(), ": is ", metadata->brief(), ", expected an object");
    }
    for (size_t i = 0; i < metadata->size(); ++i) {
      if (metadata->key(i) != "total_size") out.member(metadata->key(i), metadata->value(i));
    }
  }
  out.member("total_size", total_size(checkpoint, dropped, added)).end_object();
  for (size_t i = 0; old && i < old->size(); ++i) {
    const std::string& key = old->key(i);
    if (key != "metadata" && key != "weight_map") out.member(key, old->value(i));
  }
  out.key("weight_map").begin_object();
  for (const auto& [name, file] : files) out.member(name, file);
  return out.end_object().end_object().text();
}

bool all_ones(const KvScales& scales) {
  return std::all_of(scales.layers.begin(), scales.layers.end(), [](const LayerScales& layer) {
    const auto is_one = [](float scale) { return scale == 1; };
    return std::all_of(layer.k.begin(), layer.k.end(), is_one) &&
           std::all_of(layer.v.begin(), layer.v.end(), is_one);
  });
}

// What a model's own config makes of a target.
struct Fit {
  QuantConfig quant;  // of the model; none when it is there for the cache alone and is replaced
  Naming naming;
  bool per_head = false;
  bool compressed_tensors = false;  // the result has a config of that kind
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

Naming naming_of(const Checkpoint& checkpoint, const InjectTarget& target, QuantMethod method) {
  const bool own_block = method == QuantMethod::none;
  Naming naming;
  naming.fused = target.fused && (own_block || !target.apart);
  if (!target.apart) return naming;
  const bool compressed = own_block || method == QuantMethod::compressed_tensors;
  const std::string type = checkpoint.config().get_string("model_type", "");
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
    naming.apart = names == PortableNames::both;
    naming.parameters = names == PortableNames::both || names == PortableNames::parameters;
    naming.projections = names == PortableNames::projections;
  }
  return naming;
}

// ModelOpt's own file stays in the folder, so that a block by another tool beside it would leave
// two stories of the same scales.
void check_one_producer(const QuantConfig& quant) {
  if (!quant.hf_quant || !quant.block || quant.method == QuantMethod::modelopt) return;
  throw Error(cat(quant.hf_quant->where(), ": is ModelOpt's, but ", quant.block->where(),
                  ": is of quant_method ", quote(quant.name())),
              "the two are of different checkpoints: remove the one that is not this one's");
}

Fit fit_to(const Checkpoint& checkpoint, const InjectTarget& target, const std::string& stack,
           bool replace, bool scales_per_head) {
  Fit fit;
  fit.quant = read_quant_config(checkpoint);
  check_one_producer(fit.quant);
  fit.replaces_block = replace && is_for_cache_alone(fit.quant, checkpoint.tensors());
  if (fit.replaces_block) fit.quant = {};
  const QuantMethod method = fit.quant.method;
  const std::string reason = why_refused(target, method);
  if (!reason.empty()) {
    refuse(checkpoint, target, cat("is quantised by ", quote(fit.quant.name())), reason);
  }
  const bool own_block = method == QuantMethod::none;
  if (own_block && target.block == InjectTarget::Block::fp8) {
    check_fp8_form(checkpoint, target, stack);
  }
  fit.naming = naming_of(checkpoint, target, method);
  fit.compressed_tensors = own_block ? target.block == InjectTarget::Block::compressed_tensors
                                     : method == QuantMethod::compressed_tensors;
  fit.per_head = scales_per_head && target.per_head && fit.compressed_tensors;
  return fit;
}

// What stays of the model's own configs must not say that the cache is of another type: nobody
// would then take the scales for those of an FP8 cache.
void check_says_fp8(const Checkpoint& checkpoint, const std::map<std::string, std::string>& files) {
  const auto parsed = [&](const std::string& name, const std::string& text) {
    return Json::parse(text, quote((checkpoint.folder() / name).string()), JsonNumbers::python);
  };
  std::optional<Json> hf_quant = read_hf_quant(checkpoint.folder());
  if (const auto it = files.find(kModelOptFile); it != files.end()) {
    hf_quant = parsed(it->first, it->second);
  }
  const KvConfig config = read_kv_config(parsed("config.json", files.at("config.json")), hf_quant);
  if (config.statement.empty() || config.is_fp8) return;
  throw Error(cat(config.statement, ", expected an FP8 cache"),
              "these scales are for FP8; inject into the model this one was made from");
}

// The configs of the result, by name.
std::map<std::string, std::string> new_configs(const Checkpoint& checkpoint,
                                               const InjectTarget& target, const Fit& fit) {
  std::map<std::string, std::string> files;
  switch (fit.quant.method) {
    case QuantMethod::compressed_tensors:
    case QuantMethod::fp8:
    case QuantMethod::modelopt:
      files = with_cache_scales(checkpoint, fit.quant, fit.per_head);
      break;
    case QuantMethod::none:
    case QuantMethod::quark:
    case QuantMethod::trtllm:
    case QuantMethod::ammo:
    case QuantMethod::other:
      break;  // what a config of these says stays as it is
  }
  std::string& config = files["config.json"];
  if (config.empty()) config = read_regular_text(checkpoint.config_path());
  config = json_with_member(config, "kv_cache_torch_dtype",
                            cat('"', format_name(KvFormat::e4m3fn), '"'));
  if (fit.quant.method != QuantMethod::none) return files;
  if (fit.replaces_block) config = json_without_member(config, "compression_config");
  switch (target.block) {
    case InjectTarget::Block::none:
      if (fit.replaces_block) config = json_without_member(config, "quantization_config");
      break;
    case InjectTarget::Block::compressed_tensors:
      config = json_with_member(config, "quantization_config",
                                compressed_tensors_block(checkpoint.tensors(), fit.per_head));
      break;
    case InjectTarget::Block::fp8:
      config = json_with_member(config, "quantization_config", fp8_block(checkpoint.tensors()));
      break;
  }
  return files;
}

std::map<std::string, std::string> config_files(const Checkpoint& checkpoint,
                                                const InjectTarget& target, const Fit& fit) {
  std::map<std::string, std::string> files = new_configs(checkpoint, target, fit);
  check_says_fp8(checkpoint, files);
  return files;
}

// Layers whose K and V have scales of their own, which one number for both cannot tell apart.
size_t layers_apart(const KvScales& scales) {
  return static_cast<size_t>(
      std::count_if(scales.layers.begin(), scales.layers.end(), [](const LayerScales& layer) {
        return layer.has_cache() && largest(layer.k) != largest(layer.v);
      }));
}

std::vector<std::string> notes_on_values(const KvScales& scales, const InjectTarget& target,
                                         const Fit& fit) {
  std::vector<std::string> notes;
  if (kv_range(scales.format).fnuz) {
    notes.push_back("scales for E4M3FNUZ were halved to those for E4M3FN");
  }
  if (scales.per_head() && !fit.per_head) {
    notes.push_back(cat("the scales of ", scales.scales_per_layer(),
                        " KV heads were reduced to their maximum: ", target.runtime,
                        " has one per layer",
                        target.per_head ? cat(" beside ", quote(fit.quant.name())) : ""));
  }
  const size_t apart = fit.naming.tells_k_from_v() ? 0 : layers_apart(scales);
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

// The names that files of the checkpoint get.
std::map<std::string, std::string> renamed_files(const Checkpoint& checkpoint, const Fit& fit) {
  const std::vector<Shard>& shards = checkpoint.shards();
  const bool has_single = std::any_of(shards.begin(), shards.end(),
                                      [](const Shard& shard) { return shard.file == kSingleFile; });
  if (!fit.compressed_tensors || !has_single) return {};
  if (std::filesystem::exists(checkpoint.folder() / kOnlyShard)) {
    throw Error(cat(quote((checkpoint.folder() / kOnlyShard).string()), ": stands in the way of ",
                    quote(kSingleFile), ", which is to get that name"),
                "keep the one of the two that holds the model");
  }
  return {{kSingleFile, kOnlyShard}};
}

std::vector<std::string> notes_on_form(const Checkpoint& checkpoint, const InjectTarget& target,
                                       const Fit& fit, const ScalePatch& patch) {
  std::vector<std::string> notes;
  const size_t dropped = patch.dropped.size();
  if (dropped > 0) {
    notes.push_back(cat(count_of(dropped, "scale tensor"), " of the model ",
                        dropped == 1 ? "was" : "were", " replaced"));
  }
  if (target.fused && !fit.naming.fused) {
    notes.push_back(cat("kv_scale is left out: beside the config of ", quote(fit.quant.name()),
                        " vLLM would take it for K's"));
  }
  for (const auto& [from, to] : patch.renamed) {
    notes.push_back(cat(from, " is called ", to, ": beside a ", from,
                        " transformers ignores the index, and would run with scales that nobody "
                        "set"));
  }
  if (!checkpoint.index() && patch.renamed.empty()) {
    notes.push_back(
        "transformers prefers model.safetensors and so ignores the index and the scales: there the "
        "model works as before");
  }
  return notes;
}

}  // namespace

ScalePatch make_patch(const Checkpoint& checkpoint, const KvScales& scales,
                      const InjectTarget& target, bool replace) {
  FP8KV_ASSERT(!target.is_file);
  const AttentionName attention = attention_of(checkpoint, scales);
  const Fit fit = fit_to(checkpoint, target, attention.stack, replace, scales.per_head());
  const KvScales converted = with_format(scales, KvFormat::e4m3fn);
  const KvScales written = fit.per_head ? converted : per_tensor(converted);
  std::vector<NamedScale> named = named_scales(written, attention, fit.naming);
  for (DraftTensor& draft : draft_tensors(checkpoint, written, target)) {
    named.push_back({std::move(draft.name), std::move(draft.values)});
  }

  ScalePatch patch;
  if (replace) patch.dropped = kv_scale_names(checkpoint);
  patch.renamed = renamed_files(checkpoint, fit);
  patch.files = config_files(checkpoint, target, fit);
  const Shape of_one = fit.per_head             ? Shape{1, 1, 1}  // a layer with one head
                       : fit.compressed_tensors ? Shape{1}
                                                : Shape{};
  patch.files[kScaleShard] = shard_bytes(named, of_one, scales.provenance);
  patch.files[kIndexFile] = index_text(checkpoint, patch, named);
  patch.notes = notes_on_values(scales, target, fit);
  for (std::string& note : drafts_left_out(checkpoint, scales, target)) {
    patch.notes.push_back(std::move(note));
  }
  for (std::string& note : notes_on_form(checkpoint, target, fit, patch)) {
    patch.notes.push_back(std::move(note));
  }
  return patch;
}

}  // namespace fp8kv
