#include "scales/scale_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/shell.h"
#include "core/model/model_description.h"
#include "core/scales/amax_scales.h"
#include "files/file.h"
#include "files/lfs_pointer.h"
#include "scales/draft_json.h"
#include "scales/identity_json.h"
#include "scales/scale_evidence.h"

namespace fp8kv {
namespace {

constexpr uint64_t kLargestFile = uint64_t(64) << 20;  // 1,000 layers of 128 heads take 20 MB
constexpr const char* kVllmSource = "vllm-json";

// "12" -> 12; nullopt unless the text is the plain decimal form.
std::optional<size_t> plain_index(const std::string& text) {
  size_t index = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, index);
  if (error != std::errc() || stop != end || cat(index) != text) return std::nullopt;
  return index;
}

void require_text(const Json& value, const std::string& expected, const std::string& help) {
  if (value.as_string() == expected) return;
  throw Error(cat(value.where(), ": is ", quote(value.as_string()), ", expected ", quote(expected)),
              help);
}

// Whether the file uses the form that lists layers without a cache.
bool is_sparse(const Json& extension) {
  const Json schema = extension.at("schema");
  if (schema.as_string() == kScaleFileSchema) return false;
  if (schema.as_string() == kSparseScaleFileSchema) return true;
  throw Error(cat(schema.where(), ": is ", quote(schema.as_string()), ", expected ",
                  quote(kScaleFileSchema), " or ", quote(kSparseScaleFileSchema)),
              "another version of fp8kv wrote it: use that version, or calibrate again");
}

// The members of an object whose keys are numbers, in numeric order. `noun` is for messages.
std::map<size_t, Json> numbered(const Json& object, const char* noun) {
  if (!object.is_object() || object.size() == 0) {
    fail(object.where(), ": is ", object.brief(), ", expected an object with one member per ",
         noun);
  }
  std::map<size_t, Json> members;
  for (size_t i = 0; i < object.size(); ++i) {
    const auto index = plain_index(object.key(i));
    if (!index || *index >= size_t{kMostLayers}) {
      fail(object.where(), ": the key ", quote(object.key(i)), " is not the number of a ", noun);
    }
    members.emplace(*index, object.value(i));
  }
  return members;
}

// Throws unless the keys are "0" to "N-1".
void check_complete(const Json& object, const std::map<size_t, Json>& members, const char* noun) {
  size_t next = 0;
  for (const auto& [index, value] : members) {
    if (index != next) break;
    ++next;
  }
  if (next == members.size()) return;
  fail(object.where(), ": ", noun, " ", next, " is missing from ", count_of(members.size(), noun));
}

// The shared scale of K and V, by layer.
using LayerFactors = std::map<size_t, float>;

LayerFactors read_rank(const Json& rank, bool every_layer) {
  const std::map<size_t, Json> layers = numbered(rank, "layer");
  if (every_layer) check_complete(rank, layers, "layer");
  LayerFactors factors;
  for (const auto& [layer, factor] : layers) {
    factors[layer] = static_cast<float>(factor.as_double());
  }
  return factors;
}

void check_ranks_agree(const Json& factors, const LayerFactors& first, const LayerFactors& other,
                       size_t rank) {
  if (other.size() != first.size()) {
    fail(factors.where(), ": rank 0 has ", count_of(first.size(), "layer"), ", rank ", rank,
         " has ", other.size());
  }
  const auto [ours, theirs] = std::mismatch(first.begin(), first.end(), other.begin());
  if (ours == first.end()) return;
  const std::string help =
      "scales of one tensor-parallel split serve no other: keep a single rank, with the "
      "largest scale of each layer";
  if (ours->first != theirs->first) {
    throw Error(cat(factors.where(), ": rank 0 has layer ", ours->first, " where rank ", rank,
                    " has layer ", theirs->first, ", expected the same in every rank"),
                help);
  }
  throw Error(cat(factors.where(), ": layer ", ours->first, " is ", ours->second, " in rank 0 and ",
                  theirs->second, " in rank ", rank, ", expected the same in every rank"),
              help);
}

// Reads the factors of rank 0, and throws unless all ranks agree.
LayerFactors read_scaling_factor(const Json& factors, bool every_layer) {
  const std::map<size_t, Json> ranks = numbered(factors, "rank");
  check_complete(factors, ranks, "rank");
  const LayerFactors first = read_rank(ranks.at(0), every_layer);
  for (const auto& [rank, layers] : ranks) {
    if (rank > 0) check_ranks_agree(factors, first, read_rank(layers, every_layer), rank);
  }
  return first;
}

// The number of K scales in a layer; V has as many. 0: the first row decides.
size_t read_granularity(const Json& extension, int64_t n_kv_heads) {
  const Json value = extension.at("granularity");
  if (value.as_string() == "tensor") return 1;
  if (value.as_string() == "head") return static_cast<size_t>(n_kv_heads);
  fail(value.where(), ": is ", quote(value.as_string()), ", expected 'tensor' or 'head'");
}

std::vector<bool> layers_with_scales(const KvScales& scales) {
  std::vector<bool> has_cache;
  for (const LayerScales& layer : scales.layers) has_cache.push_back(layer.has_cache());
  return has_cache;
}

void read_scales(const Json& extension, KvScales& out) {
  const Json k_rows = extension.at("k_scale");
  const size_t heads = read_granularity(extension, out.n_kv_heads);
  RowShape shape = with_row_length({layers_with_scales(out), heads}, k_rows);
  if (heads > 1) shape.of_layers.assign(out.layer_kv_heads.begin(), out.layer_kv_heads.end());
  const auto k = read_rows(k_rows, shape);
  const auto v = read_rows(extension.at("v_scale"), shape);
  std::vector<std::vector<float>> q(out.layers.size());
  if (const auto rows = extension.find("q_scale")) q = read_rows(*rows, {shape.has_cache, 1});
  for (size_t layer = 0; layer < out.layers.size(); ++layer) {
    if (!shape.has_cache[layer]) continue;
    const float factor = out.layers[layer].k[0];
    out.layers[layer] = {k[layer], v[layer], q[layer]};
    const float most = fused_scale(out.layers[layer]);
    if (most == factor) continue;
    throw Error(
        cat(extension.where(), ": layer ", layer, ": the largest of k_scale and v_scale is ", most,
            ", kv_cache.scaling_factor has ", factor),
        "one of the two was edited: calibrate again, or remove the 'fp8kv' object to use "
        "scaling_factor alone");
  }
}

// In the sparse form, only n_layers tells of layers behind the last one with a cache.
void read_layer_count(const Json& model, bool sparse, KvScales& out) {
  const uint64_t n_layers = count_at(model, "n_layers");
  if (n_layers == out.layers.size()) return;
  if (!sparse || n_layers < out.layers.size() || n_layers > uint64_t{kMostLayers}) {
    fail(model.where(), ".n_layers: is ", n_layers, ", kv_cache.scaling_factor has ",
         sparse ? cat("layer ", out.layers.size() - 1) : cat(out.layers.size()));
  }
  out.layers.resize(n_layers);
}

// Reads the KV heads of each layer, for models whose layers differ.
void read_layer_heads(const Json& layers, KvScales& out) {
  if (!layers.is_array() || layers.size() != out.layers.size()) {
    fail(layers.where(), ": is ", layers.brief(), ", expected an array of ",
         count_of(out.layers.size(), "layer"));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const int64_t heads = layers[i].as_int();
    if (heads < 0 || heads > out.n_kv_heads) {
      fail(layers[i].where(), ": is ", heads, ", expected 0 to ", out.n_kv_heads,
           ", which is n_kv_heads");
    }
    out.layer_kv_heads.push_back(heads);
  }
}

void read_model(const Json& model, bool sparse, KvScales& out) {
  read_layer_count(model, sparse, out);
  Provenance& provenance = out.provenance;
  provenance.model_fingerprint = model.get_string("fingerprint", "");
  provenance.accepted_foreign = model.get_string("accepted_foreign", "");
  if (const auto identity = model.find("identity")) {
    provenance.model_identity = read_identity(*identity, provenance.model_fingerprint);
  }
  if (model.has("unknown_config_keys")) {
    const Json keys = model.at("unknown_config_keys");
    for (size_t i = 0; i < keys.size(); ++i) provenance.unknown_keys.push_back(keys[i].as_string());
  }
  provenance.weights_from = model.get_string("quantised_weights", "");
  if (!model.has("n_kv_heads")) return;
  const uint64_t n_kv_heads = count_at(model, "n_kv_heads");
  if (n_kv_heads == 0) fail(model.where(), ".n_kv_heads: is 0, expected 1 or more");
  out.n_kv_heads = static_cast<int64_t>(n_kv_heads);
  if (const auto layers = model.find("layer_kv_heads")) read_layer_heads(*layers, out);
}

Observation read_observation(const Json& extension) {
  const std::string name = extension.get_string("observation", "");
  if (const auto known = observation_from_name(name)) return *known;
  fail(extension.where(), ".observation: is ", quote(name), ", expected 'post_rope' or 'pre_rope'");
}

void read_skipped(const Json& layers, KvScales& out) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const int64_t layer = layers[i].as_int();
    const bool rises = out.skipped.empty() || layer > out.skipped.back();
    if (layer < 0 || layer >= std::ssize(out.layers) || !rises) {
      fail(layers.where(), "[", i, "]: is ", layer, ", expected rising numbers of layers below ",
           out.layers.size());
    }
    out.skipped.push_back(layer);
  }
}

void read_extension(const Json& extension, bool sparse, KvScales& out) {
  require_text(extension.at("format"), format_name(out.format),
               "the file contradicts itself: calibrate again");
  Provenance& provenance = out.provenance;
  provenance.source = extension.get_string("source", "");
  provenance.tool_version = extension.get_string("tool_version", "");
  if (const auto producer = extension.find("producer")) {
    provenance.producer = producer->get_string("name", "");
    provenance.producer_version = producer->get_string("version", "");
  }
  provenance.stored_dtype = extension.get_string("stored_dtype", "");
  provenance.observer = extension.get_string("observer", "");
  provenance.compute_dtype = extension.get_string("compute_dtype", "");
  provenance.headroom = extension.get_double("headroom", 1.0);
  if (!(provenance.headroom > 0)) {
    fail(extension.where(), ".headroom: is ", provenance.headroom, ", expected more than 0");
  }
  provenance.policy = extension.get_string("policy", "");
  provenance.observation = read_observation(extension);
  if (sparse || extension.has("model")) read_model(extension.at("model"), sparse, out);
  if (const auto counted = extension.find("counted")) read_counted(*counted, provenance);
  if (const auto cache = extension.find("cache")) {
    require_text(*cache, kLatentCache,
                 "another version of fp8kv wrote it: use that version, or calibrate again");
    out.latent = true;
  }
  if (const auto skipped = extension.find("skip_layers")) read_skipped(*skipped, out);
  read_scales(extension, out);
  const auto heads = static_cast<size_t>(out.n_kv_heads);
  RowShape shape{layers_with_scales(out), heads};
  shape.of_layers.assign(out.layer_kv_heads.begin(), out.layer_kv_heads.end());
  read_magnitudes(extension, shape, provenance);
  read_drafts(extension, out);
}

}  // namespace

KvScales parse_scale_file(const Json& document, const std::string& source) {
  if (!is_scale_file(document)) {
    throw Error(cat(source, ": is not a scale file: it has no kv_cache.scaling_factor"),
                "make one with 'fp8kv calibrate', or take one out of a checkpoint with 'fp8kv "
                "extract'");
  }
  KvScales scales;
  scales.model_type = document.get_string("model_type", "");
  const Json kv_cache = document.at("kv_cache");
  if (kv_cache.at("dtype").as_string() == format_name(KvFormat::nvfp4)) {
    scales.format = KvFormat::nvfp4;
  } else {
    require_text(kv_cache.at("dtype"), format_name(KvFormat::e4m3fn),
                 "scale files hold E4M3FN or NVFP4 scales; FNUZ scales are twice those of E4M3FN");
  }
  const auto extension = document.find("fp8kv");
  const bool sparse = !extension || is_sparse(*extension);
  const LayerFactors factors = read_scaling_factor(kv_cache.at("scaling_factor"), !sparse);
  scales.layers.resize(factors.rbegin()->first + 1);
  for (const auto& [layer, scale] : factors) scales.layers[layer] = {{scale}, {scale}};
  if (extension) {
    read_extension(*extension, sparse, scales);
  } else {
    scales.provenance.source = kVllmSource;
  }
  check_values(scales, source);
  return scales;
}

KvScales read_scale_file(const std::filesystem::path& path) {
  const std::string text = read_text(path, kLargestFile);
  const std::string name = quote(path.string());
  refuse_lfs_pointer(text, name);
  if (text.starts_with("\xEF\xBB\xBF")) {
    throw Error(cat(name, ": begins with a byte order mark, which JSON must not have (RFC 8259)"),
                cat("remove its 3 bytes: tail -c +4 ", shell_path(path.string()), " > NEW"));
  }
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{') {
    throw Error(cat(name, ": is not a scale file"),
                "a scale file is the JSON that 'fp8kv calibrate' or 'fp8kv extract' writes");
  }
  KvScales scales = parse_scale_file(Json::parse(text, name), name);
  check_follows_amax(scales, name);
  return scales;
}

bool is_scale_file(const Json& document) {
  const auto kv_cache = document.find("kv_cache");
  return document.has("fp8kv") || (kv_cache && kv_cache->has("scaling_factor"));
}

}  // namespace fp8kv
