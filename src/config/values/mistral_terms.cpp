#include "config/values/mistral_terms.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

// A key of params.json, and its name in config.json.
struct Key {
  const char* own;
  const char* hf;
};

constexpr Key kSizes[] = {{"dim", "hidden_size"},
                          {"n_layers", "num_hidden_layers"},
                          {"n_heads", "num_attention_heads"},
                          {"n_kv_heads", "num_key_value_heads"},
                          {"hidden_dim", "intermediate_size"},
                          {"norm_eps", "rms_norm_eps"},
                          {"vocab_size", "vocab_size"}};
constexpr Key kLatentSizes[] = {{"q_lora_rank", "q_lora_rank"},
                                {"kv_lora_rank", "kv_lora_rank"},
                                {"qk_nope_head_dim", "qk_nope_head_dim"},
                                {"qk_rope_head_dim", "qk_rope_head_dim"},
                                {"v_head_dim", "v_head_dim"}};
constexpr Key kMixtral[] = {{"num_experts", "num_local_experts"},
                            {"num_experts_per_tok", "num_experts_per_tok"}};
constexpr Key kLatentExperts[] = {{"num_experts", "n_routed_experts"},
                                  {"num_experts_per_tok", "num_experts_per_tok"},
                                  {"num_shared_experts", "n_shared_experts"},
                                  {"expert_hidden_dim", "moe_intermediate_size"},
                                  {"first_k_dense_replace", "first_k_dense_replace"},
                                  {"routed_scale", "routed_scaling_factor"},
                                  {"num_expert_groups", "n_group"},
                                  {"num_expert_groups_per_tok", "topk_group"}};

// Keys of "moe" with the one value that is computed, as JSON. "" allows any: these divide experts
// among devices.
constexpr Key kFixedExperts[] = {{"route_every_n", "1"},
                                 {"renorm_strategy", "\"WEIGHTS\""},
                                 {"use_load_balancing_bias", "false"},
                                 {"expert_parallel", ""},
                                 {"expert_model_parallel", ""}};

// vLLM takes this context for a params.json that gives none.
constexpr int64_t kContextOfVllm = 128'000;
// All tokenizers of Mistral have these ids; params.json has none.
constexpr int kBosId = 1, kEosId = 2;

constexpr const char* kHfForm =
    "use the folder in the format of Hugging Face, with config.json and model.safetensors, if the "
    "model is published in it too";

[[noreturn]] void refuse(const Json& value, std::string_view why) {
  throw Error(cat(value.where(), ": is ", value.brief(), why), kHfForm);
}

// The class of transformers that computes the model.
struct Kind {
  const char* architecture;
  const char* model_type;
};
constexpr Kind kDense = {"MistralForCausalLM", "mistral"};
constexpr Kind kWindowsByLayer = {"MinistralForCausalLM", "ministral"};
constexpr Kind kGrowing = {"Ministral3ForCausalLM", "ministral3"};
constexpr Kind kExperts = {"MixtralForCausalLM", "mixtral"};
constexpr Kind kLatentKind = {"Mistral4ForCausalLM", "mistral4"};
constexpr Kind kWithImages = {"Mistral3ForConditionalGeneration", "mistral3"};

class Translation {
 public:
  Translation(const Json& params, const std::string& dtype) : params_(params), dtype_(dtype) {
    latent_ = find("qk_nope_head_dim") || find("kv_lora_rank");
    moe_ = object("moe");
    yarn_ = object("yarn");
    growth_ = object("llama_4_scaling");
    windows_ = find("sliding_window");
    kind_ = find_kind();
  }

  Json config() {
    check_type();
    const bool images = has_images();
    const std::optional<Json> quantization = find("quantization");
    out_.begin_object();
    if (images) {
      name(kWithImages);
      out_.key("vision_config").begin_object();
      out_.member("model_type", "pixtral").end_object();
    }
    if (quantization) write_quantization(*quantization);
    if (images) out_.key("text_config").begin_object();
    write_text();
    if (images) out_.end_object();
    out_.end_object();
    return Json::parse(out_.text(), cat(params_.where(), " as config.json"), JsonNumbers::python);
  }

 private:
  std::optional<Json> find(const char* key) {
    known_.insert(key);
    return params_.find(key);
  }
  Json at(const char* key) {
    known_.insert(key);
    return params_.at(key);
  }
  std::optional<Json> object(const char* key) {
    std::optional<Json> found = find(key);
    if (found && !found->is_object()) {
      fail(found->where(), ": is ", found->brief(), ", expected an object");
    }
    return found;
  }

  template <typename T>
  void write(const char* key, const T& value) {
    written_.insert(key);
    out_.member(key, value);
  }
  template <typename T>
  void write_or(const char* key, const char* own, const T& otherwise) {
    const auto said = find(own);
    said ? write(key, *said) : write(key, otherwise);
  }
  void name(const Kind& kind) {
    const std::vector<std::string> names = {kind.architecture};
    out_.key("architectures").value(std::span<const std::string>(names));
    out_.member("model_type", kind.model_type);
  }

  // Whether layers differ in their windows.
  bool windows_differ() const {
    if (!windows_ || !windows_->is_array()) return false;
    for (size_t i = 1; i < windows_->size(); ++i) {
      if ((*windows_)[i].brief() != (*windows_)[0].brief()) return true;
    }
    return false;
  }

  Kind find_kind() const {
    const bool shared = moe_ && moe_->get_int("num_shared_experts", 0) > 0;
    if (latent_) {
      if (!moe_) {
        throw Error(cat(params_.where(), ": has latent attention (kv_lora_rank) and no 'moe', ",
                        "expected experts beside it, like in Mistral Large 3"),
                    kHfForm);
      }
      for (const char* key : {"yarn", "llama_4_scaling"}) params_.at(key);
      if (windows_) refuse(*windows_, ", expected null: latent attention has no window here");
      return kLatentKind;
    }
    if (shared) {
      refuse(moe_->at("num_shared_experts"),
             ", expected 0: shared experts are supported beside latent attention alone");
    }
    if (windows_differ()) {
      if (!moe_ && !growth_) return kWindowsByLayer;
      refuse(*windows_, ", expected one window for all layers of this kind of model");
    }
    if (moe_ && growth_) refuse(*growth_, ", expected null beside 'moe' without latent attention");
    return moe_ ? kExperts : growth_ ? kGrowing : kDense;
  }

  void check_type() {
    const auto type = find("model_type");
    if (type && type->as_string() != "transformer") {
      refuse(*type, ", expected \"transformer\"");
    }
  }

  bool has_images() {
    const auto multimodal = object("multimodal");
    const bool encoder = find("vision_encoder").has_value();
    if (!multimodal) return encoder;
    if (multimodal->has("vision_encoder_args")) return true;
    refuse(*multimodal,
           ", expected 'vision_encoder_args' in it: models of sound are not supported "
           "in Mistral's format");
  }

  // Per-tensor FP8 alone has the same meaning under transformers' names.
  void write_quantization(const Json& quantization) {
    const auto format = quantization.find("qformat_weight");
    if (!format || format->as_string() != "fp8_e4m3") {
      refuse(quantization,
             ", expected {\"qformat_weight\": \"fp8_e4m3\", ..}: other quantised "
             "weights are not supported in Mistral's format");
    }
    const auto scheme = quantization.find("qscheme_act");
    const std::string inputs = scheme ? scheme->as_string() : "TENSOR";
    if (inputs != "TENSOR" && inputs != "NO_SCALES") {
      refuse(*scheme, ", expected \"TENSOR\" or \"NO_SCALES\"");
    }
    out_.key("quantization_config").begin_object();
    out_.member("quant_method", "fp8");
    out_.member("activation_scheme", inputs == "TENSOR" ? "static" : "dynamic");
    out_.end_object();
  }

  void write_text() {
    name(kind_);
    for (const Key& key : kSizes) write(key.hf, at(key.own));
    write_heads();
    write_rope();
    write_windows();
    if (moe_) write_experts();
    const bool has_length = find("max_seq_len") && !find("max_position_embeddings");
    write_or("max_position_embeddings", has_length ? "max_seq_len" : "max_position_embeddings",
             kContextOfVllm);
    write_or("hidden_act", "activation", "silu");
    write_or("tie_word_embeddings", "tied_embeddings", false);
    if (!dtype_.empty() && !params_.has("dtype") && !params_.has("torch_dtype")) {
      write("dtype", dtype_);
    }
    write("bos_token_id", kBosId);
    write("eos_token_id", kEosId);
    write_others();
  }

  void write_heads() {
    const auto head_dim = find("head_dim");
    if (!latent_) {
      write("head_dim", head_dim ? *head_dim : at("head_dim"));
      return;
    }
    for (const Key& key : kLatentSizes) write(key.hf, at(key.own));
  }

  // Programs differ in the default of rope_theta: 10,000 in vLLM, and in Mistral's own 1,000,000.
  void write_rope() {
    const Json theta = at("rope_theta");
    written_.insert("rope_parameters");
    if (!yarn_ && !growth_) {
      write("rope_theta", theta);
      return;
    }
    out_.key("rope_parameters").begin_object();
    out_.member("rope_type", yarn_ ? "yarn" : "default").member("rope_theta", theta);
    if (yarn_) write_yarn();
    if (growth_) write_growth();
    out_.end_object();
  }

  void write_yarn() {
    constexpr Key kYarn[] = {
        {"factor", "factor"},
        {"original_max_position_embeddings", "original_max_position_embeddings"},
        {"beta", "beta_fast"},
        {"alpha", "beta_slow"}};
    for (const char* key : {"factor", "original_max_position_embeddings"}) yarn_->at(key);
    std::set<std::string> known = {"apply_scale"};
    for (const Key& key : kYarn) {
      known.insert(key.own);
      if (const auto value = yarn_->find(key.own)) out_.member(key.hf, *value);
    }
    check_known(*yarn_, known);
    // Magnitudes: latent attention scales its scores, and other attention scales Q and K.
    if (!yarn_->get_bool("apply_scale", true)) {
      out_.member("attention_factor", 1);
    } else if (latent_) {
      out_.member("mscale", 1).member("mscale_all_dim", 1);
    }
  }

  void write_growth() {
    constexpr const char* kOriginal = "original_max_position_embeddings";
    const Json original = growth_->at(kOriginal), beta = growth_->at("beta");
    check_known(*growth_, {kOriginal, "beta"});
    if (yarn_) {
      const Json of_yarn = yarn_->at(kOriginal);
      if (of_yarn.as_int() != original.as_int()) {
        refuse(original, cat(", expected ", of_yarn.brief(), " as in 'yarn': transformers has one ",
                             "number for both"));
      }
    } else {
      out_.member(kOriginal, original);
    }
    out_.member("llama_4_scaling_beta", beta);
  }

  // A pattern of windows repeats until all layers have one.
  void write_windows() {
    written_.insert({"sliding_window", "layer_types"});
    if (latent_) return;
    out_.key("sliding_window");
    if (!windows_) {
      out_.null();
    } else if (windows_->is_array()) {
      write_pattern();
    } else {
      out_.value(window_of(*windows_));
    }
  }

  void write_pattern() {
    const auto count = windows_->size();
    const int64_t n_layers = in_range(at("n_layers"), kMostLayers);
    if (count == 0 || n_layers % static_cast<int64_t>(count) != 0) {
      fail(windows_->where(), ": is ", windows_->brief(), ", expected a list whose length divides ",
           n_layers, ", the number of layers");
    }
    std::optional<int64_t> window;
    for (size_t i = 0; i < count; ++i) {
      const Json each = (*windows_)[i];
      if (each.is_null()) continue;
      if (window && *window != window_of(each)) {
        refuse(*windows_, ", expected windows of one size");
      }
      window = window_of(each);
    }
    if (window) {
      out_.value(*window);
    } else {
      out_.null();
    }
    if (!windows_differ()) return;
    std::vector<std::string> types;
    for (int64_t layer = 0; layer < n_layers; ++layer) {
      const bool full = (*windows_)[static_cast<size_t>(layer) % count].is_null();
      types.emplace_back(full ? "full_attention" : "sliding_attention");
    }
    out_.key("layer_types").value(std::span<const std::string>(types));
  }

  // Some files have the number as a string.
  int64_t window_of(const Json& window) const {
    const bool digits = window.is_string() && !window.as_string().empty() &&
                        window.as_string().size() < 10 &&
                        window.as_string().find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoll(window.as_string()) : in_range(window, kLongestContext);
  }

  void write_experts() {
    std::set<std::string> known;
    for (const Key& key : latent_ ? std::span<const Key>(kLatentExperts) : kMixtral) {
      known.insert(key.own);
      const bool groups = std::string_view(key.own).starts_with("num_expert_groups");
      if (!groups || moe_->has(key.own)) write(key.hf, moe_->at(key.own));
    }
    for (const Key& key : kFixedExperts) {
      known.insert(key.own);
      const auto said = moe_->find(key.own);
      if (!said || *key.hf == '\0' || said->brief() == key.hf) continue;
      refuse(*said, cat(", expected ", key.hf));
    }
    known.insert("num_shared_experts");
    check_known(*moe_, known);
    if (latent_) write("norm_topk_prob", true);
  }

  static void check_known(const Json& object, const std::set<std::string>& known) {
    for (size_t i = 0; i < object.size(); ++i) {
      if (known.contains(object.key(i)) || object.value(i).is_null()) continue;
      const std::vector<std::string> names(known.begin(), known.end());
      throw Error(cat(object.where(), ": has the key ", quote(object.key(i)),
                      ", which is not known here", did_you_mean(object.key(i), names)),
                  kHfForm);
    }
  }

  // Copies the keys that nothing has read.
  void write_others() {
    for (size_t i = 0; i < params_.size(); ++i) {
      const std::string& key = params_.key(i);
      if (known_.contains(key)) continue;
      if (written_.contains(key)) {
        fail(params_.value(i).where(), ": is a key of config.json, not of ", kParamsFile);
      }
      out_.member(key, params_.value(i));
    }
  }

  Json params_;
  std::string dtype_;
  bool latent_ = false;
  std::optional<Json> moe_, yarn_, growth_, windows_;
  Kind kind_ = kDense;
  JsonWriter out_;
  std::set<std::string> known_;    // keys of params.json that were read
  std::set<std::string> written_;  // keys of config.json that were written
};

}  // namespace

Json config_of_mistral(const Json& params, const std::string& dtype) {
  return Translation(params, dtype).config();
}

}  // namespace fp8kv
