#include "scales/write/scale_shard.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "base/error.h"
#include "checkpoint/drafts/draft_layers.h"
#include "checkpoint/layer_name.h"
#include "core/numbers/host_view.h"
#include "json/json.h"
#include "scales/scale_names.h"

namespace fp8kv {
namespace {

// The part of a K projection's name before the projection, or "".
std::string block_of_k(std::string_view rest) {
  constexpr std::string_view kProjections[] = {
      "k_proj.", "qkv_proj.",           "W_pack.", "c_attn.", "query_key_value.", "wk_dv.",
      "wqkv.",   "kv_a_proj_with_mqa.", "Wqkv.",   "wkv."};
  const auto name = in_attention(rest);
  const bool of_k = name && std::any_of(std::begin(kProjections), std::end(kProjections),
                                        [&](std::string_view k) { return name->starts_with(k); });
  return of_k ? attention_in(rest) : "";
}

using NameSet = std::set<std::string>;

uint64_t bytes_of(const Checkpoint& checkpoint, const NameSet& dropped, bool of_dropped) {
  uint64_t total = 0;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (dropped.contains(name) != of_dropped) continue;
    total += location.entry.end - location.entry.begin;
  }
  return total;
}

// The bytes of all tensors. Starts from the count in the index, if it has one.
int64_t total_size(const Checkpoint& checkpoint, const NameSet& dropped, uint64_t added) {
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

}  // namespace

std::string AttentionName::at(size_t layer) const {
  return attention_path(stack, block, paired, static_cast<int64_t>(layer));
}

AttentionName attention_of(const Checkpoint& checkpoint, const KvScales& scales) {
  const std::vector<DraftLayer> drafts =
      find_draft_layers(checkpoint.tensors(), checkpoint.config());
  std::map<AttentionName, std::set<size_t>> stacks;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (draft_of(drafts, name) < drafts.size()) continue;
    const auto parts = split_layer_name(name);
    const std::string block = parts ? block_of_k(parts->rest) : "";
    if (block.empty()) continue;
    stacks[{cat(parts->prefix, parts->layers), block, parts->paired}].insert(
        static_cast<size_t>(parts->layer));
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
  // Later layers use the blocks of the first: Zamba 2.
  const bool shared = name.block.starts_with("shared_transformer.");
  const std::vector<size_t> missing = shared ? std::vector<size_t>() : missing_in(found);
  if (missing.empty()) return name;
  fail(folder, ": has no K projection in ", layer_list(missing), " of ",
       quote(name.stack.substr(0, name.stack.size() - 1)), ", where there are scales to put");
}

std::vector<ScaleToWrite> scales_to_write(const KvScales& scales, const AttentionName& attention,
                                          const Naming& naming) {
  std::vector<ScaleToWrite> named;
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    if (!scales.layers[layer].has_cache()) continue;
    const std::string at = attention.at(layer);
    const LayerScales& own = scales.layers[layer];
    if (naming.fused) named.push_back({at + "kv_scale", {fused_scale(scales.layers[layer])}});
    const auto add = [&](bool wanted, const char* of_k, const char* of_v, const char* of_q) {
      if (!wanted) return;
      named.push_back({at + of_k, own.k});
      named.push_back({at + of_v, own.v});
      if (!own.q.empty()) named.push_back({at + of_q, own.q});
    };
    add(naming.apart, "k_scale", "v_scale", "q_scale");
    add(naming.parameters, "attn.k_scale", "attn.v_scale", "attn.q_scale");
    add(naming.projections, "k_proj.k_scale", "v_proj.v_scale", "q_proj.q_scale");
  }
  return named;
}

std::string shard_bytes(const std::vector<ScaleToWrite>& scales, const Shape& shape_of_one,
                        const Provenance& from, const std::string& evidence) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, values] : scales) {
    const auto heads = static_cast<int64_t>(values.size());
    const Shape shape = heads > 1 ? Shape{heads, 1, 1} : shape_of_one;
    tensors.push_back({name, host_view(values, shape)});
  }
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  const std::string observation = observation_name(from.observation);
  if (!observation.empty()) metadata[kObservationKey] = observation;
  if (!from.accepted_foreign.empty()) metadata[kAcceptedForeignKey] = from.accepted_foreign;
  if (!evidence.empty()) metadata[kEvidenceKey] = evidence;
  return safetensors_bytes(tensors, metadata);
}

std::string index_text(const Checkpoint& checkpoint, const IndexChanges& changes,
                       const std::vector<ScaleToWrite>& scales) {
  const NameSet dropped(changes.dropped.begin(), changes.dropped.end());
  std::map<std::string, std::string> files;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (dropped.contains(name)) continue;
    const std::string& file = checkpoint.shards()[location.shard].file;
    const auto renamed = changes.renamed.find(file);
    files[name] = renamed == changes.renamed.end() ? file : renamed->second;
  }
  uint64_t added = 0;
  for (const ScaleToWrite& scale : scales) {
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

}  // namespace fp8kv
