#include "scales/dialects.h"

#include <algorithm>

#include "base/text.h"
#include "checkpoint/layer_name.h"

namespace fp8kv {
namespace {

template <QuantMethod method>
bool is(const KvConfig& config) {
  return config.method == method;
}

template <bool before_0_7>
bool is_compressed_tensors(const KvConfig& config) {
  return is<QuantMethod::compressed_tensors>(config) && config.before_0_7 == before_0_7;
}

bool is_llm_compressor(const KvConfig& config) {
  return is_compressed_tensors<false>(config) && !config.by_autoround;
}

template <bool by_quark>
bool is_fp8(const KvConfig& config) {
  return is<QuantMethod::fp8>(config) && config.by_quark == by_quark && !config.by_autoround;
}

template <KvFormat format>
bool is_autoround(const KvConfig& config) {
  return config.by_autoround && config.stated == format;
}

bool is_any(const KvConfig&) {
  return true;
}

template <Observation where>
Observation always_observed(const KvConfig&) {
  return where;
}

Observation tgi_observation(const KvConfig& config) {
  return config.tgi_script ? Observation::before_rope : Observation::likely_before_rope;
}

// compressed-tensors writes its version since 0.7, the first release that measures after RoPE. A
// block without a version was written by hand, or by a tool that only wants it read.
Observation by_version(const KvConfig& config) {
  return config.version.empty() ? Observation::unknown : Observation::after_rope;
}

Observation quark_observation(const KvConfig& config) {
  return config.post_rope ? Observation::after_rope : Observation::before_rope;
}

// TensorRT-LLM checkpoints name ModelOpt as their producer since about 0.27, when its quantisers
// moved behind RoPE.
Observation trtllm_observation(const KvConfig& config) {
  if (config.producer != "modelopt" || config.version.empty()) return Observation::unknown;
  return version_before(config.version, "0.27") ? Observation::before_rope
                                                : Observation::after_rope;
}

bool is_modelopt_fp8(const KvConfig& config) {
  return is<QuantMethod::modelopt>(config) && config.stated == KvFormat::e4m3fn;
}
bool is_modelopt_23(const KvConfig& config) {
  return is_modelopt_fp8(config) && version_before(config.version, "0.27");
}
bool is_modelopt_27(const KvConfig& config) {
  return is_modelopt_fp8(config) && !is_modelopt_23(config) &&
         version_before(config.version, "0.43");
}
// ModelOpt applies no floor to NVFP4 caches, in any version.
bool is_modelopt_nvfp4(const KvConfig& config) {
  return is<QuantMethod::modelopt>(config) && config.stated == KvFormat::nvfp4;
}
bool is_modelopt_43(const KvConfig& config) {
  return is_modelopt_fp8(config) && !version_before(config.version, "0.43");
}

using Patterns = std::vector<ScalePattern>;

Patterns pair(const std::string& k, const std::string& v) {
  return {{k, ScaleOf::k}, {v, ScaleOf::v}};
}

Patterns operator+(Patterns a, const Patterns& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Dialect> make_rows() {
  using enum Observation;
  using enum Carrier;
  const Patterns fused = {{"self_attn.kv_scale", ScaleOf::both}};
  const Patterns apart = pair("self_attn.k_scale", "self_attn.v_scale");
  const Patterns outputs = pair("self_attn.k_proj.output_scale", "self_attn.v_proj.output_scale");
  const Patterns at_proj = pair("self_attn.k_proj.k_scale", "self_attn.v_proj.v_scale");
  const Patterns global = pair("self_attn.k_global_scale", "self_attn.v_global_scale");
  const Patterns of_cache = pair("self_attn.k_cache.scale", "self_attn.v_cache.scale");
  const Patterns parameters = pair("self_attn.attn.k_scale", "self_attn.attn.v_scale") +
                              pair("self_attn.qkv_proj.k_scale", "self_attn.qkv_proj.v_scale") +
                              pair("self_attn.qkqkv_proj.k_scale", "self_attn.qkqkv_proj.v_scale");
  const Patterns trtllm =
      Patterns{{"attention.kv_cache_scaling_factor", ScaleOf::both}} +
      pair("attention.k_cache_scaling_factor", "attention.v_cache_scaling_factor");
  const Patterns npz = {{"kv_cache_scaling_factor", ScaleOf::both}};
  const char* const kFp8 = "quant_method `fp8`, kv_cache_scheme `static`";
  const char* const kOld = "`compression_config` instead of quantization_config";
  const char* const kCt = "quant_method `compressed-tensors`, kv_cache_scheme";
  const char* const kOpt = "producer `modelopt`, cache FP8";
  const char* const kBefore = "before RoPE";
  const char* const kAfter = "after RoPE";
  // clang-format off
  return {
      {"kv_scale", "kv_scale", "TGI's FP8 KV-cache branch", "", kBefore,
       fused, is<QuantMethod::none>, tgi_observation},
      {"k_scale/v_scale", "k_scale/v_scale", "who writes for TGI 2.4 or later", "", "not told",
       apart, is<QuantMethod::none>, always_observed<unknown>},
      {"vllm-json", "vllm-json", "vLLM 0.4 to 0.6: a JSON file", "", kBefore,
       {}, is_any, always_observed<likely_before_rope>, json},
      {"autofp8-kv_scale", "autofp8", "AutoFP8, June and July 2024", kFp8, kBefore,
       fused, is_fp8<false>, always_observed<before_rope>},
      {"autofp8-output_scale", "autofp8", "AutoFP8, a branch of July 2024", kFp8, kBefore,
       outputs, is_fp8<false>, always_observed<before_rope>},
      {"autofp8", "autofp8", "AutoFP8 since July 2024", kFp8, kBefore,
       apart, is_fp8<false>, always_observed<before_rope>},
      {"compressed-tensors-0.5", "compressed-tensors", "llm-compressor 0.1, uncompressed also 0.2",
       kOld, kBefore, outputs, is_compressed_tensors<true>, always_observed<before_rope>},
      {"compressed-tensors-0.6", "compressed-tensors", "llm-compressor 0.2", kOld, kBefore,
       apart, is_compressed_tensors<true>, always_observed<before_rope>},
      {"compressed-tensors", "compressed-tensors", "llm-compressor since 0.3", kCt, kAfter,
       apart, is_llm_compressor, by_version},
      {"autoround", "autoround", "AutoRound, in any of its formats",
       "quant_method or provider `auto-round`, or autoround_version", kAfter,
       apart, is_autoround<KvFormat::e4m3fn>, always_observed<after_rope>},
      {"autoround-nvfp4", "autoround", "AutoRound, for an NVFP4 cache",
       "static_kv_dtype `nvfp4`", kAfter,
       global, is_autoround<KvFormat::nvfp4>, always_observed<after_rope>},
      {"modelopt-0.23", "modelopt", "ModelOpt 0.23 to 0.25", kOpt, kBefore,
       at_proj, is_modelopt_23, always_observed<before_rope>, model_folder, 1},
      {"modelopt-0.27", "modelopt", "ModelOpt 0.27 to 0.42", kOpt, kAfter,
       at_proj, is_modelopt_27, always_observed<after_rope>, model_folder, 1},
      {"modelopt", "modelopt", "ModelOpt since 0.43", kOpt, kAfter,
       at_proj, is_modelopt_43, by_version},
      {"modelopt-nvfp4", "modelopt", "ModelOpt, for an NVFP4 cache",
       "producer `modelopt`, cache NVFP4", kAfter,
       at_proj, is_modelopt_nvfp4, by_version},
      {"modelopt-megatron", "modelopt", "ModelOpt's export of Megatron models", kOpt, kAfter,
       apart, is_modelopt_fp8, always_observed<after_rope>, model_folder, 1},
      {"compressed-tensors-proj", "compressed-tensors",
       "who writes for loaders that stop at self_attn.k_scale", kCt, kAfter,
       at_proj, is_compressed_tensors<false>, by_version},
      {"trtllm", "trtllm", "AMMO and ModelOpt for TensorRT-LLM, one file per rank",
       "kv_cache_quant_algo `FP8`", "after RoPE since ModelOpt 0.27",
       trtllm, is<QuantMethod::trtllm>, trtllm_observation, rank_folder, 1},
      {"ammo-npz", "ammo-npz", "AMMO until 0.7, one .npz per rank", "", kBefore,
       npz, is<QuantMethod::ammo>, always_observed<before_rope>, npz_folder},
      {"quark", "quark", "AMD Quark", "quant_method `quark`, export.kv_cache_group",
       "before RoPE unless kv_cache_post_rope",
       outputs, is<QuantMethod::quark>, quark_observation, model_folder, 0, true},
      {"quark-fp8", "quark", "AMD Quark, custom_mode `fp8`",
       "quant_method `fp8`, export.kv_cache_group", kBefore,
       apart + fused, is_fp8<true>, quark_observation, model_folder, 0, true},
      {"hy-v3", "hy-v3", "Hunyuan V3", "", "not told", of_cache, is_any, always_observed<unknown>},
      {"vllm-parameters", "vllm-parameters", "who saves vLLM's own parameters", "", "not told",
       parameters, is_any, always_observed<unknown>},
  };
  // clang-format on
}

const std::vector<Dialect>& rows() {
  static const std::vector<Dialect> kRows = make_rows();
  return kRows;
}

// "k_proj.k_scale" and "v_proj.v_scale" both become "{k,v}_proj.{k,v}_scale".
std::string of_both(std::string_view name) {
  std::string out;
  for (size_t at = 0; at < name.size(); ++at) {
    const bool starts = at == 0 || name[at - 1] == '.';
    const std::string_view part = name.substr(at, 2);
    const bool of_one = starts && (part == "k_" || part == "v_");
    out += of_one ? "{k,v}" : std::string(1, name[at]);
  }
  return out;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> options) {
  return std::find(options.begin(), options.end(), text) != options.end();
}

}  // namespace

std::span<const Dialect> dialects() {
  return rows();
}

const Dialect* find_dialect(std::string_view name) {
  const auto found = std::find_if(rows().begin(), rows().end(),
                                  [&](const Dialect& row) { return row.name == name; });
  return found == rows().end() ? nullptr : &*found;
}

std::vector<std::string> tensor_forms(const Dialect& dialect) {
  if (dialect.carrier == Carrier::json) return {"kv_cache.scaling_factor"};
  std::vector<std::string> forms;
  for (const ScalePattern& pattern : dialect.patterns) {
    std::string form = of_both(pattern.rest);
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) {
      forms.push_back(std::move(form));
    }
  }
  return forms;
}

DialectMatch match_scale_name(Carrier carrier, std::string_view name) {
  // TensorRT-LLM and AMMO folders use fixed names, which their patterns spell out in full.
  const auto in_block = carrier == Carrier::model_folder ? in_attention(name) : std::nullopt;
  const std::string rest =
      in_block ? cat(kAttentionNames.front(), ".", *in_block) : std::string(name);
  DialectMatch match;
  for (const Dialect& row : rows()) {
    if (row.carrier != carrier) continue;
    for (const ScalePattern& pattern : row.patterns) {
      if (pattern.rest != rest) continue;
      match.rows.push_back(&row);
      match.of = pattern.of;
    }
  }
  return match;
}

bool is_offset(std::string_view name) {
  const auto names = {".q_zero_point",
                      ".k_zero_point",
                      ".v_zero_point",
                      ".q_proj.output_zero_point",
                      ".k_proj.output_zero_point",
                      ".v_proj.output_zero_point",
                      ".k_proj.k_bias",
                      ".v_proj.v_bias"};
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

const char* why_ignored(std::string_view rest) {
  const auto what = in_attention(rest);
  if (!what) return nullptr;
  if (is_one_of(*what, {"q_proj.output_scale", "q.scale", "qkv_proj.q_scale"})) {
    return "scales of Q's projection, which is not cached";
  }
  if (is_one_of(*what, {"prob_output_scale", "attn.prob_scale", "prob_scale"})) {
    return "scales of the softmax, which is not cached";
  }
  if (is_offset(rest)) return "zero points, which are 0";
  return nullptr;
}

bool looks_like_kv_scale(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string_view last = dot == name.npos ? name : name.substr(dot + 1);
  const std::string_view before = dot == name.npos ? "" : name.substr(0, dot);
  if (name.find("cache") != name.npos && name.find("scal") != name.npos) return true;
  if (is_one_of(last, {"k_scale", "v_scale", "kv_scale", "key_scale", "value_scale", "k_scales",
                       "v_scales", "kv_scales", "k_scale_inv", "v_scale_inv", "k_global_scale",
                       "v_global_scale"})) {
    return true;
  }
  return last == "output_scale" && (before.ends_with("k_proj") || before.ends_with("v_proj") ||
                                    before.ends_with("kv_proj") || before.ends_with("qkv_proj"));
}

}  // namespace fp8kv
