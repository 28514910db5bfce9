#include "show/models/checkpoint_text.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/text.h"
#include "checkpoint/identity/equalized_from.h"
#include "json/json.h"
#include "show/models/description_text.h"
#include "show/output.h"
#include "show/scales/draft_text.h"
#include "show/scales/scales_text.h"

namespace fp8kv {
namespace {

// Bytes and counts of a checkpoint's tensors by dtype.
struct DTypeShare {
  uint64_t tensors = 0;
  uint64_t bytes = 0;
};

std::map<std::string, DTypeShare> shares_of(const std::vector<TensorEntry>& tensors) {
  std::map<std::string, DTypeShare> shares;
  for (const TensorEntry& entry : tensors) {
    DTypeShare& share = shares[std::string(dtype_name(entry.dtype))];
    ++share.tensors;
    share.bytes += entry.end - entry.begin;
  }
  return shares;
}

std::vector<TensorEntry> all_tensors(const Checkpoint& checkpoint) {
  std::vector<TensorEntry> entries;
  for (const Shard& shard : checkpoint.shards()) {
    entries.insert(entries.end(), shard.header.tensors.begin(), shard.header.tensors.end());
  }
  return entries;
}

// The lines about layers: their heads, and how many have a cache if not all do.
// "64", or "48 to 64" if layers differ.
std::string heads_text(const ModelDescription& model) {
  const std::vector<int64_t>& each = model.heads_by_layer;
  if (each.empty()) return cat(model.n_heads);
  return cat(*std::min_element(each.begin(), each.end()), " to ", model.n_heads);
}

std::string layers_text(const ModelDescription& model) {
  std::string text = described(
      "layers", cat(model.n_layers(), "; ", heads_text(model), " heads, ", kv_heads_text(model)));
  if (model.unclear) {
    text += described("KV cache", cat("not known: ", model.unclear->what()));
  } else if (model.cache_layers() < model.n_layers()) {
    text += described("KV cache",
                      cat("in ", model.cache_layers(), " of ", model.n_layers(), " layers"));
  }
  return text;
}

std::vector<DraftLayer> drafts_in(const CheckpointView& view) {
  return find_draft_layers(view.checkpoint.tensors(), view.checkpoint.config());
}

}  // namespace

std::string checkpoint_description(const CheckpointView& view) {
  const ModelDescription& model = view.model;
  const std::string verdict =
      view.not_runnable ? cat("not runnable here: ", view.not_runnable->what())
      : view.is_drafter ? "a drafter (EAGLE-3): calibrate it with --target MODEL"
                        : "supported";
  const std::string address = view.checkpoint.address();
  std::string text = address.empty() ? described("folder", plain(view.checkpoint.folder().string()))
                                     : described("address", plain(address));
  text += described("architecture",
                    cat(plain(model.architecture), " (", plain(model.model_type), "), ", verdict));
  text += unknown_keys_text(view.unknown_keys);
  text += quantised_text(view.stored_as, view.compute_dtype);
  text += layers_text(model);
  text += draft_layers_text(drafts_in(view), view.found.scales);
  if (model.max_seq_len > 0) text += described("context", cat(model.max_seq_len, " tokens"));
  uint64_t bytes = 0;
  for (const Shard& shard : view.checkpoint.shards()) bytes += shard.bytes;
  text += described(
      "shards", cat(count_of(view.checkpoint.shards().size(), "file"), ", ", human_bytes(bytes)));
  for (const auto& [name, share] : shares_of(all_tensors(view.checkpoint))) {
    text += described("  " + name,
                      cat(count_of(share.tensors, "tensor"), ", ", human_bytes(share.bytes)));
  }
  if (view.fingerprint) text += described("fingerprint", *view.fingerprint);
  if (view.checkpoint.is_partial()) {
    text += described("fingerprint", "not known: the weights were not read");
  }
  if (const auto from = equalized_from(view.checkpoint.folder())) {
    text += described("equalised", cat("for ", plain(from->format), ", from ", quote(from->model),
                                       " (", plain(from->fingerprint), ")"));
  }
  text += found_scales_text(view.found);
  if (model.unclear) return text;
  const std::string table = cache_table(model);
  return table.empty() ? text : text + "\n" + table;
}

std::string checkpoint_json(const CheckpointView& view) {
  const ModelDescription& model = view.model;
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.inspect/1").member("kind", "checkpoint");
  json.member("folder", utf8_name(view.checkpoint.folder().string()));
  if (view.checkpoint.is_partial()) json.member("address", view.checkpoint.address());
  json.member("architecture", model.architecture).member("model_type", model.model_type);
  json.member("supported", !view.not_runnable && !view.is_drafter);
  if (view.is_drafter) json.member("drafter", true);
  json.member("n_layers", model.n_layers());
  json.member("n_heads", model.n_heads).member("n_kv_heads", model.n_kv_heads());
  json.member("head_dim", model.head_dim()).member("max_seq_len", model.max_seq_len);
  unknown_keys_json(json, view.unknown_keys);
  quantised_json(json, view.stored_as);
  if (view.fingerprint) json.member("fingerprint", *view.fingerprint);
  if (const auto from = equalized_from(view.checkpoint.folder())) {
    json.key("equalised").begin_object().member("for", from->format);
    json.member("model", from->model).member("fingerprint", from->fingerprint).end_object();
  }
  json.key("shards").begin_array();
  for (const Shard& shard : view.checkpoint.shards()) {
    json.begin_object().member("file", shard.file).member("bytes", shard.bytes).end_object();
  }
  json.end_array().key("dtypes").begin_object();
  for (const auto& [name, share] : shares_of(all_tensors(view.checkpoint))) {
    json.key(name).begin_object().member("tensors", share.tensors);
    json.member("bytes", share.bytes).end_object();
  }
  json.end_object();
  layers_json(json, model);
  draft_layers_json(json, drafts_in(view), view.found.scales);
  found_scales_json(json, view.found, view.found.dialect);
  return json.end_object().text();
}

}  // namespace fp8kv
