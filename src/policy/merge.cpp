#include "policy/merge.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "core/scales/amax_scales.h"
#include "core/scales/compare_models.h"
#include "policy/make_scales.h"

namespace fp8kv {
namespace {

constexpr uint64_t kMostNamed = 32;  // missing shards in a message

LayerScales draft_scales(const Policy& policy, const DraftScales& draft, bool latent) {
  KvScales made;
  made.latent = latent;
  apply_policy(without_losses(policy), magnitudes_of({draft.amax}), made);
  return made.layers[0];
}

void check_drafts(const Calibration& part) {
  for (const DraftScales& draft : part.scales.drafts) {
    if (!draft.amax.k.empty()) continue;
    throw Error(
        cat(part.name, ": draft layer ", draft.layer, ": does not say what magnitudes were seen"),
        "merge takes scale files of 'fp8kv calibrate' alone");
  }
}

void check_calibration(const Calibration& part) {
  const Provenance& from = part.scales.provenance;
  const std::string help = "merge takes scale files of 'fp8kv calibrate' alone";
  if (from.source != kCalibrateSource) {
    throw Error(cat(part.name, ": is no calibration: its scales come from ", quote(from.source)),
                help);
  }
  if (from.amax.empty() || from.octaves.empty() || from.windows == 0) {
    throw Error(cat(part.name, ": does not say ",
                    from.windows == 0 ? "how much was counted" : "what magnitudes were seen"),
                help);
  }
  with_context(part.name, [&] { policy_of(part.scales); });  // throws for an unknown policy
  check_follows_amax(part.scales, part.name);
  check_drafts(part);
}

void check_same_caches(const Calibration& a, const Calibration& b) {
  for (size_t layer = 0; layer < a.scales.layers.size(); ++layer) {
    const bool has_cache = b.scales.layers[layer].has_cache();
    if (a.scales.layers[layer].has_cache() == has_cache) continue;
    throw Error(cat(b.name, ": layer ", layer, has_cache ? " has a KV cache" : " has no KV cache",
                    ", but in ", a.name, " it has ", has_cache ? "none" : "one"),
                "only calibrations of one model, made in the same way, can be merged");
  }
}

// The KV heads of the first layer with a cache. All such layers have as many.
size_t heads_in_amax(const Provenance& from) {
  for (const LayerAmax& layer : from.amax) {
    if (!layer.k.empty()) return layer.k.size();
  }
  return 0;
}

void check_same_model(const Calibration& a, const Calibration& b) {
  const Provenance &from = a.scales.provenance, &other = b.scales.provenance;
  if (!from.model_identity || !other.model_identity) return;  // only fingerprints can be compared
  const std::string difference =
      difference_text(compare_models(*from.model_identity, *other.model_identity));
  if (difference.empty()) return;
  throw Error(cat(b.name, ": is of another model than ", a.name, ": ", difference),
              "only calibrations of one model, made in the same way, can be merged");
}

std::string draft_names(const KvScales& scales) {
  std::vector<std::string> names;
  for (const DraftScales& draft : scales.drafts) {
    names.push_back(cat(draft.layer, " of ", count_of(draft.amax.k.size(), "KV head")));
  }
  return names.empty() ? "none" : join(names);
}

void check_same(const Calibration& a, const Calibration& b, bool any_policy) {
  const auto same = [&](const char* what, const std::string& x, const std::string& y) {
    if (x == y) return;
    throw Error(cat(b.name, ": ", what, " is ", y, ", but ", a.name, " has ", x),
                "only calibrations of one model, made in the same way, can be merged");
  };
  const Provenance &from = a.scales.provenance, &other = b.scales.provenance;
  check_same_model(a, b);
  same("the model's fingerprint", quote(from.model_fingerprint), quote(other.model_fingerprint));
  same("the model type", quote(a.scales.model_type), quote(b.scales.model_type));
  same("the number of layers", cat(a.scales.layers.size()), cat(b.scales.layers.size()));
  check_same_caches(a, b);
  same("the number of KV heads", cat(a.scales.n_kv_heads), cat(b.scales.n_kv_heads));
  const auto numbers = [](const std::vector<int64_t>& all) {
    std::vector<std::string> words;
    for (const int64_t each : all) words.push_back(cat(each));
    return words.empty() ? "none" : join(words);
  };
  same("the KV heads of layers", numbers(a.scales.layer_kv_heads),
       numbers(b.scales.layer_kv_heads));
  same("the list of draft layers", draft_names(a.scales), draft_names(b.scales));
  same("the number of heads in amax", cat(heads_in_amax(from)), cat(heads_in_amax(other)));
  same("the format", format_name(a.scales.format), format_name(b.scales.format));
  same("the list of layers left in 16 bit", numbers(a.scales.skipped), numbers(b.scales.skipped));
  same("the cache", a.scales.latent ? "'latent'" : "K and V",
       b.scales.latent ? "'latent'" : "K and V");
  same("the observation", quote(observation_name(from.observation)),
       quote(observation_name(other.observation)));
  same("what is not known in config.json", quote(join(from.unknown_keys)),
       quote(join(other.unknown_keys)));
  same("how weights are quantised", quote(from.weights_from), quote(other.weights_from));
  same("the compute dtype", quote(from.compute_dtype), quote(other.compute_dtype));
  if (any_policy) return;
  same("the granularity", a.scales.per_head() ? "'head'" : "'tensor'",
       b.scales.per_head() ? "'head'" : "'tensor'");
  same("the headroom", cat(from.headroom), cat(other.headroom));
  same("the policy", quote(policy_name(a.scales)), quote(policy_name(b.scales)));
}

std::string extent(const ShardNote& shards) {
  return cat(count_of(shards.of, "shard"), " of ", count_of(shards.windows, "window"), ", ",
             count_of(shards.tokens, "token"), " and ", count_of(shards.documents, "document"));
}

// Throws unless all parts are different shards of one calibration.
void check_shards(const std::vector<Calibration>& parts) {
  const Calibration& first = parts[0];
  const ShardNote& whole = first.scales.provenance.shards;
  std::map<uint64_t, const Calibration*> holder;
  for (const Calibration& part : parts) {
    const ShardNote& shards = part.scales.provenance.shards;
    if (extent(shards) != extent(whole)) {
      throw Error(cat(part.name, ": is of ", extent(shards), ", but ", first.name, " is of ",
                      extent(whole)),
                  "shards must be made with the same data and the same options");
    }
    if (part.scales.provenance.data != first.scales.provenance.data) {
      throw Error(cat(part.name, ": is a shard of other data than ", first.name),
                  "shards must be made with the same data and the same options");
    }
    for (const uint64_t index : shards.taken) {
      const auto [at, added] = holder.emplace(index, &part);
      if (added) continue;
      throw Error(cat(part.name, ": has shard ", index, "/", shards.of, ", which ",
                      at->second->name, " has too"),
                  "name each shard once");
    }
  }
}

// Throws if two parts counted the same data.
void check_data(const std::vector<Calibration>& parts) {
  std::map<std::string, const Calibration*> holder;
  for (const Calibration& part : parts) {
    if (part.scales.provenance.shards.of > 0) {
      throw Error(cat(part.name, ": is a shard, but ", parts[0].name, " is not"),
                  "merge all shards of a calibration with each other first");
    }
    for (const DataFile& file : part.scales.provenance.data) {
      const auto [at, added] = holder.emplace(file.sha256, &part);
      if (added || at->second == &part) continue;
      throw Error(cat(part.name, ": counted the data ", quote(file.name), " (sha256 ", file.sha256,
                      "), which ", at->second->name, " counted too"),
                  "to split one set of data, calibrate it in shards");
    }
  }
}

// Adds counts of Q if both sides have them. Older versions wrote none.
void add_q(OctaveCounts& sum, const OctaveCounts& part) {
  const auto is_known = [](const OctaveCounts& of) { return of.zeros > 0 || !of.counts.empty(); };
  if (is_known(sum) && is_known(part)) return sum.add(part);
  sum = {};
}

void add_part(Provenance& sum, const Provenance& part, bool sharded) {
  for (size_t layer = 0; layer < sum.amax.size(); ++layer) {
    add_up(sum.amax[layer], part.amax[layer]);
    sum.octaves[layer].k.add(part.octaves[layer].k);
    sum.octaves[layer].v.add(part.octaves[layer].v);
    add_q(sum.octaves[layer].q, part.octaves[layer].q);
  }
  // Each window belongs to one text part, whatever other data there is. So parts add up.
  for (size_t i = 0; i < kTextParts; ++i) add_up(sum.parts[i], part.parts[i]);
  sum.documents += part.documents;
  sum.windows += part.windows;
  sum.tokens += part.tokens;
  if (!sharded) sum.data.insert(sum.data.end(), part.data.begin(), part.data.end());
  std::vector<std::string>& templates = sum.chat_templates;
  templates.insert(templates.end(), part.chat_templates.begin(), part.chat_templates.end());
  std::sort(templates.begin(), templates.end());
  templates.erase(std::unique(templates.begin(), templates.end()), templates.end());
  std::vector<uint64_t>& taken = sum.shards.taken;
  taken.insert(taken.end(), part.shards.taken.begin(), part.shards.taken.end());
  if (sum.positions.rope_type.empty()) sum.positions = part.positions;
  std::vector<uint64_t>& windows = sum.positions.longest_windows;
  const std::vector<uint64_t>& more = part.positions.longest_windows;
  windows.insert(windows.end(), more.begin(), more.end());
  std::sort(windows.begin(), windows.end());
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
}

bool counted_the_same(const std::vector<LayerMagnitudes>& layers, const Provenance& seen) {
  Provenance found;
  add_magnitudes(layers, found);
  return found.amax == seen.amax && found.octaves == seen.octaves;
}

// Whether both have the same layers and heads, so that they can be added.
bool same_shape(const std::vector<LayerMagnitudes>& layers, const std::vector<LayerAmax>& amax) {
  return std::equal(
      layers.begin(), layers.end(), amax.begin(), amax.end(),
      [](const LayerMagnitudes& a, const LayerAmax& b) { return a.k.size() == b.k.size(); });
}

// Throws, naming the file that is missing or superfluous.
[[noreturn]] void refuse_histograms(const std::vector<Histograms>& files,
                                    const std::vector<Calibration>& parts, const Policy& policy) {
  for (const Calibration& part : parts) {
    const bool found = std::any_of(files.begin(), files.end(), [&](const Histograms& file) {
      return counted_the_same(file.layers, part.scales.provenance);
    });
    if (found) continue;
    throw Error(cat(part.name, ": the histograms of what it counted are not there",
                    needs_histograms(*policy.kind)
                        ? cat(", and the policy ", quote(policy_name(policy)), " needs them")
                        : ""),
                "'fp8kv calibrate --histograms FILE' writes them; name those of all parts");
  }
  for (const Histograms& file : files) {
    const bool found = std::any_of(parts.begin(), parts.end(), [&](const Calibration& part) {
      return counted_the_same(file.layers, part.scales.provenance);
    });
    if (!found) fail(file.name, ": are histograms of none of the calibrations");
  }
  fail("the histograms count more than the calibrations do: some are there twice");
}

// Whether every layer with a cache has losses.
bool has_losses(const std::vector<LayerMagnitudes>& layers) {
  return std::all_of(layers.begin(), layers.end(), [](const LayerMagnitudes& layer) {
    return layer.k.empty() || !layer.k.front().losses.empty();
  });
}

// The sum of all histograms. It must match what `sum` counted.
std::vector<LayerMagnitudes> add_histograms(const std::vector<Histograms>& files,
                                            const std::vector<Calibration>& parts,
                                            const Policy& policy, const Provenance& sum) {
  std::vector<LayerMagnitudes> total;
  for (const Histograms& file : files) {
    if (!same_shape(file.layers, sum.amax)) {
      fail(file.name, ": has other layers or KV heads than ", parts[0].name);
    }
    if (policy.kind->needs == PolicyNeeds::losses && !has_losses(file.layers)) {
      throw Error(cat(file.name, ": has no losses of scales, and the policy ",
                      quote(policy_name(policy)), " needs them"),
                  "'fp8kv calibrate --policy loss --histograms FILE' measures them");
    }
    add_up(total, file.layers);
  }
  if (!counted_the_same(total, sum)) refuse_histograms(files, parts, policy);
  return total;
}

// Merges the maxima of draft layers and applies the policy. Histogram files do not cover draft
// layers.
void merge_drafts(const std::vector<Calibration>& parts, const Policy& policy, KvScales& merged) {
  if (merged.drafts.empty()) return;
  if (policy.kind->needs == PolicyNeeds::histograms) {
    throw Error(cat(parts[0].name, ": has scales of draft layers (", draft_names(merged),
                    "), and the policy ", quote(policy_name(policy)),
                    " needs histograms of them, which no file has"),
                "merge by a policy that needs maxima alone, or calibrate in one run");
  }
  for (size_t i = 0; i < merged.drafts.size(); ++i) {
    DraftScales& draft = merged.drafts[i];
    for (size_t part = 1; part < parts.size(); ++part) {
      add_up(draft.amax, parts[part].scales.drafts[i].amax);
    }
    draft.scales = draft_scales(policy, draft, merged.latent);
  }
}

// If all shards are there, turns the sum into a whole calibration.
void close_shards(Provenance& sum, Log& log) {
  ShardNote& shards = sum.shards;
  std::sort(shards.taken.begin(), shards.taken.end());
  const uint64_t n_missing = shards.of - shards.taken.size();
  if (n_missing > kMostNamed) {
    log.warn(cat("still missing: ", count_of(n_missing, "shard"), " of ", shards.of));
    return;
  }
  if (n_missing > 0) {
    std::vector<std::string> missing;
    for (uint64_t i = 0; i < shards.of; ++i) {
      if (!std::binary_search(shards.taken.begin(), shards.taken.end(), i)) {
        missing.push_back(cat(i, "/", shards.of));
      }
    }
    log.warn(cat("still missing: shard", n_missing == 1 ? " " : "s ", join(missing)));
    return;
  }
  const ShardNote found{shards.of, {}, sum.documents, sum.windows, sum.tokens};
  if (extent(found) != extent(shards)) {
    throw Error(cat("the shards add up to ", extent(found), ", expected ", extent(shards)),
                "a file was edited, or made by another version: calibrate again");
  }
  shards = {};
}

}  // namespace

KvScales merge_calibrations(const std::vector<Calibration>& parts, Log& log, const MergeBy& by) {
  FP8KV_ASSERT(!parts.empty());
  for (const Calibration& part : parts) {
    check_calibration(part);
    check_same(parts[0], part, by.policy.has_value());
  }
  const bool sharded = parts[0].scales.provenance.shards.of > 0;
  sharded ? check_shards(parts) : check_data(parts);
  KvScales merged = parts[0].scales;
  Provenance& sum = merged.provenance;
  for (size_t i = 1; i < parts.size(); ++i) {
    add_part(sum, parts[i].scales.provenance, sharded);
  }
  std::sort(sum.data.begin(), sum.data.end());
  const Policy policy = by.policy ? *by.policy : policy_of(merged);
  const auto counted = needs_histograms(*policy.kind) || !by.histograms.empty()
                           ? add_histograms(by.histograms, parts, policy, sum)
                           : magnitudes_of(sum.amax);
  if (sharded) close_shards(sum, log);
  apply_policy(policy, counted, merged);
  merge_drafts(parts, policy, merged);
  warn_of_zeros(merged, log);
  sum.tool_version = FP8KV_VERSION;
  return merged;
}

}  // namespace fp8kv
