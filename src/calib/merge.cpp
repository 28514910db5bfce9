#include "calib/merge.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "calib/scale_policy.h"

namespace fp8kv {
namespace {

constexpr uint64_t kMostNamed = 32;  // missing shards

ScalePolicy policy_of(const KvScales& scales) {
  return {scales.per_head() ? Granularity::head : Granularity::tensor, scales.provenance.headroom};
}

void check_calibration(const Calibration& part) {
  const Provenance& from = part.scales.provenance;
  const std::string help = "merge takes scale files of 'fp8kv calibrate' alone";
  if (from.source != "fp8kv calibrate") {
    throw Error(cat(part.name, ": is no calibration: its scales come from ", quote(from.source)),
                help);
  }
  if (from.amax.empty() || from.octaves.empty() || from.windows == 0) {
    throw Error(cat(part.name, ": does not say ",
                    from.windows == 0 ? "how much was counted" : "what magnitudes were seen"),
                help);
  }
  for (size_t layer = 0; layer < part.scales.layers.size(); ++layer) {
    if (scales_from(from.amax[layer], policy_of(part.scales)) == part.scales.layers[layer])
      continue;
    throw Error(cat(part.name, ": the scales of layer ", layer, " do not follow from its amax"),
                "the file was edited: calibrate again");
  }
}

void check_same(const Calibration& a, const Calibration& b) {
  const auto same = [&](const char* what, const std::string& x, const std::string& y) {
    if (x == y) return;
    throw Error(cat(b.name, ": ", what, " is ", y, ", but ", a.name, " has ", x),
                "only calibrations of one model, made in the same way, can be merged");
  };
  const Provenance &from = a.scales.provenance, &other = b.scales.provenance;
  same("the model's fingerprint", quote(from.model_fingerprint), quote(other.model_fingerprint));
  same("the model type", quote(a.scales.model_type), quote(b.scales.model_type));
  same("the number of layers", cat(a.scales.layers.size()), cat(b.scales.layers.size()));
  same("the number of KV heads", cat(a.scales.n_kv_heads), cat(b.scales.n_kv_heads));
  same("the format", format_name(a.scales.format), format_name(b.scales.format));
  same("the granularity", a.scales.per_head() ? "'head'" : "'tensor'",
       b.scales.per_head() ? "'head'" : "'tensor'");
  same("the headroom", cat(from.headroom), cat(other.headroom));
  same("the observation", quote(from.observation), quote(other.observation));
  same("the compute dtype", quote(from.compute_dtype), quote(other.compute_dtype));
}

std::string extent(const ShardNote& shards) {
  return cat(count_of(shards.of, "shard"), " of ", count_of(shards.windows, "window"), ", ",
             count_of(shards.tokens, "token"), " and ", count_of(shards.documents, "document"));
}

// All parts are shards of one calibration, and no shard is there twice.
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

// No data was counted by two parts.
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
                  "to split one set of data, calibrate with --shard");
    }
  }
}

void add_amax(LayerAmax& amax, const LayerAmax& other) {
  const auto raise = [](std::vector<float>& to, const std::vector<float>& from) {
    FP8KV_ASSERT(to.size() == from.size());
    for (size_t head = 0; head < to.size(); ++head) to[head] = std::max(to[head], from[head]);
  };
  raise(amax.k, other.k);
  raise(amax.v, other.v);
  raise(amax.q, other.q);
}

void add_part(Provenance& sum, const Provenance& part, bool sharded) {
  for (size_t layer = 0; layer < sum.amax.size(); ++layer) {
    add_amax(sum.amax[layer], part.amax[layer]);
    sum.octaves[layer].k.add(part.octaves[layer].k);
    sum.octaves[layer].v.add(part.octaves[layer].v);
  }
  sum.documents += part.documents;
  sum.windows += part.windows;
  sum.tokens += part.tokens;
  if (!sharded) sum.data.insert(sum.data.end(), part.data.begin(), part.data.end());
  std::vector<uint64_t>& taken = sum.shards.taken;
  taken.insert(taken.end(), part.shards.taken.begin(), part.shards.taken.end());
}

// A calibration whose shards are all there is whole again.
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

KvScales merge_calibrations(const std::vector<Calibration>& parts, Log& log) {
  FP8KV_ASSERT(!parts.empty());
  for (const Calibration& part : parts) {
    check_calibration(part);
    check_same(parts[0], part);
  }
  const bool sharded = parts[0].scales.provenance.shards.of > 0;
  sharded ? check_shards(parts) : check_data(parts);
  KvScales merged = parts[0].scales;
  Provenance& sum = merged.provenance;
  for (size_t i = 1; i < parts.size(); ++i) {
    add_part(sum, parts[i].scales.provenance, sharded);
  }
  std::sort(sum.data.begin(), sum.data.end());
  if (sharded) close_shards(sum, log);
  merged.layers = scales_of(sum.amax, policy_of(merged), log);
  sum.tool_version = FP8KV_VERSION;
  return merged;
}

}  // namespace fp8kv
