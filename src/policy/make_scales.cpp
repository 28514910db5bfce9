#include "policy/make_scales.h"

#include <algorithm>

#include "base/error.h"
#include "core/model/layer_heads.h"
#include "core/numbers/dtype.h"

namespace fp8kv {
namespace {

MagnitudeCounts sum_of(const std::vector<MagnitudeCounts>& heads) {
  MagnitudeCounts sum;
  for (const MagnitudeCounts& head : heads) sum.add(head);
  return sum;
}

std::vector<float> each_head(const Policy& policy, const std::vector<MagnitudeCounts>& heads,
                             KvFormat format) {
  std::vector<float> scales;
  for (const MagnitudeCounts& head : heads) {
    scales.push_back(policy.kind->scale(head, policy.parameter, format));
  }
  return scales;
}

LayerScales layer_scales(const Policy& policy, const LayerMagnitudes& layer, bool latent,
                         KvFormat format) {
  if (!layer.has_cache()) return {};
  if (policy.kind->sharing == ScaleSharing::head && !latent) {
    return {each_head(policy, layer.k, format), each_head(policy, layer.v, format)};
  }
  MagnitudeCounts k = sum_of(layer.k);
  MagnitudeCounts v = sum_of(layer.v);
  if (policy.kind->sharing == ScaleSharing::shared || latent) {
    k.add(v);
    v = k;
  }
  return {{policy.kind->scale(k, policy.parameter, format)},
          {policy.kind->scale(v, policy.parameter, format)}};
}

OctaveCounts octaves_over(const std::vector<MagnitudeCounts>& heads) {
  OctaveCounts octaves;
  for (const MagnitudeCounts& head : heads) octaves.add(octaves_of(head.bins));
  return octaves;
}

// Whether a scale file can leave out the policy's name: granularity and headroom then tell it.
bool is_plain_amax(const PolicyKind& kind) {
  return kind.needs == PolicyNeeds::maxima && kind.sharing != ScaleSharing::shared;
}

void warn_of_zeros(const std::vector<float>& amax, const std::vector<float>& scales,
                   const std::string& tensor, Log& log) {
  if (amax.empty()) return;
  const auto zeros = std::count(amax.begin(), amax.end(), 0.0f);
  if (zeros == std::ssize(amax)) {
    // A scale shared by K and V is 1 only if both are zero.
    if (scales[0] == 1) log.warn(cat(tensor, " is zero throughout; its scale is 1"));
  } else if (zeros > 0 && scales.size() > 1) {
    log.warn(cat(tensor, " is zero throughout in ",
                 count_of(static_cast<uint64_t>(zeros), "KV head"), "; scale 1 there"));
  }
}

// Notes the first rotation that depends on the prompt's length. Layers with any other rotation have
// no such dependence.
PositionsNote positions_of(const ModelConfig& config, uint64_t longest_window) {
  if (longest_window == 0) return {};
  const auto limit = static_cast<uint64_t>(config.max_seq_len);
  for (const RopeConfig& rope : config.ropes) {
    const bool yarn = rope.scaling == RopeScaling::yarn;
    if (yarn || rope.scaling == RopeScaling::longrope) {
      return {yarn ? "yarn" : "longrope",
              static_cast<uint64_t>(rope.original_context),
              limit,
              {longest_window}};
    }
    if (rope.base_grows) return {"dynamic", limit, limit, {longest_window}};
  }
  return {};
}

// The KV heads of each layer, in the form of KvScales::layer_kv_heads.
std::vector<int64_t> heads_counted(const std::vector<LayerMagnitudes>& layers) {
  std::vector<int64_t> heads;
  int64_t most = 0;
  for (const LayerMagnitudes& layer : layers) {
    heads.push_back(std::ssize(layer.k));
    most = std::max(most, heads.back());
  }
  const bool alike = std::all_of(heads.begin(), heads.end(),
                                 [&](int64_t each) { return each == 0 || each == most; });
  if (alike) heads.clear();
  return heads;
}

}  // namespace

void check_policy_for(const Policy& policy, KvFormat format) {
  if (!is_nvfp4(format) || policy.kind->for_nvfp4()) return;
  throw Error(cat("policy ", quote(policy.text),
                  ": makes no scales for nvfp4, which has one for K and one for V of a layer"),
              "use 'amax', 'amax*F' or a percentile", ErrorKind::usage);
}

KvScales make_scales(const std::vector<LayerMagnitudes>& layers, const Policy& policy, bool latent,
                     KvFormat format) {
  KvScales scales;
  scales.format = format;
  scales.latent = latent;
  add_magnitudes(layers, scales.provenance);
  apply_policy(policy, layers, scales);
  return scales;
}

void apply_policy(const Policy& policy, const std::vector<LayerMagnitudes>& layers,
                  KvScales& scales) {
  check_policy_for(policy, scales.format);
  scales.layers.clear();
  scales.layer_kv_heads = heads_counted(layers);
  for (const LayerMagnitudes& layer : layers) {
    scales.layers.push_back(layer_scales(policy, layer, scales.latent, scales.format));
  }
  scales.provenance.headroom = policy.headroom();
  scales.provenance.policy = is_plain_amax(*policy.kind) ? "" : policy_name(policy);
  check_values(scales, cat("policy ", quote(policy.text)));
}

void add_magnitudes(const std::vector<LayerMagnitudes>& layers, Provenance& provenance) {
  for (const LayerMagnitudes& layer : layers) {
    provenance.amax.push_back(layer_amax(layer));
    provenance.octaves.push_back(
        {octaves_over(layer.k), octaves_over(layer.v), octaves_over(layer.q)});
  }
}

void add_run(const ModelConfig& config, CountedRun run, KvScales& scales) {
  scales.model_type = config.model_type;
  scales.n_kv_heads = config.n_kv_heads();
  scales.layer_kv_heads = layer_kv_heads(config);
  scales.latent = config.latent.has_value();
  Provenance& provenance = scales.provenance;
  provenance.source = std::move(run.source);
  provenance.tool_version = std::move(run.tool_version);
  provenance.observation = Observation::after_rope;
  provenance.model_fingerprint = std::move(run.model_fingerprint);
  provenance.model_identity = std::move(run.model_identity);
  provenance.unknown_keys = config.unknown_keys;
  provenance.weights_from = config.stored_as;
  provenance.compute_dtype = torch_name(config.dtype);
  provenance.parts = std::move(run.parts);
  provenance.documents = run.documents;
  provenance.windows = run.windows;
  provenance.tokens = run.tokens;
  provenance.data = std::move(run.data);
  std::sort(provenance.data.begin(), provenance.data.end());
  provenance.chat_templates = std::move(run.chat_templates);
  provenance.shards = std::move(run.shards);
  provenance.positions = positions_of(config, run.longest_window);
}

void warn_of_zeros(const KvScales& scales, Log& log) {
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    const LayerAmax& amax = scales.provenance.amax[i];
    warn_of_zeros(amax.k, scales.layers[i].k, cat("layer ", i, ": K"), log);
    warn_of_zeros(amax.v, scales.layers[i].v, cat("layer ", i, ": V"), log);
  }
}

Policy policy_of(const KvScales& scales) {
  const Provenance& from = scales.provenance;
  if (!from.policy.empty()) return parse_policy(from.policy);
  return amax_policy(scales.per_head() ? ScaleSharing::head : ScaleSharing::tensor, from.headroom);
}

std::string policy_name(const KvScales& scales) {
  const Provenance& from = scales.provenance;
  if (!from.policy.empty() || from.source != kCalibrateSource) return from.policy;
  return policy_name(policy_of(scales));
}

}  // namespace fp8kv
