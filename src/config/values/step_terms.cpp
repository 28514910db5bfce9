#include "config/values/step_terms.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

constexpr const char *kUnwindowed = "full_attention", *kSliding = "sliding_attention";

// Published keys, and the keys of transformers for the same numbers.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kRenamed = {
    {{"moe_num_experts", "n_routed_experts"},
     {"moe_top_k", "num_experts_per_tok"},
     {"num_attention_groups", "num_key_value_heads"},
     {"num_mtp_layers", "num_nextn_predict_layers"},
     {"share_expert_dims", "share_expert_dim"}}};

// Lists with an entry for each layer, and mostly for each draft layer too.
constexpr std::array<std::string_view, 4> kLists = {"layer_types", "mlp_layer_types",
                                                    "swiglu_limits", "swiglu_limits_shared"};

// Keys that others replace.
constexpr std::array<std::string_view, 2> kReplaced = {"attention_other_setting",
                                                       "moe_layers_enum"};
// Keys that rope_parameters replaces.
constexpr std::array<std::string_view, 4> kOfRopes = {"partial_rotary_factors", "rope_scaling",
                                                      "rope_theta", "yarn_only_types"};

template <typename Names>
bool is_one_of(const Names& names, std::string_view key) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

// Entries of a list that are layers': all of it, or all but those of draft layers.
size_t entries_of_layers(const Json& list, size_t n_layers, size_t n_drafts) {
  return list.is_array() && list.size() == n_layers + n_drafts ? n_layers : list.size();
}

class StepTerms {
 public:
  explicit StepTerms(const Json& text) : text_(text) {
    n_layers_ = static_cast<size_t>(in_range(text.at("num_hidden_layers"), kMostLayers));
    const auto drafts = find_any(text, {"num_nextn_predict_layers", "num_mtp_layers"});
    n_drafts_ = drafts ? static_cast<size_t>(in_range(*drafts, 0, kMostLayers)) : 0;
    read_windows();
  }

  std::string text() {
    out_.begin_object();
    for (size_t i = 0; i < text_.size(); ++i) write_member(text_.key(i), text_.value(i));
    write_kinds();
    write_heads();
    if (!has_ropes_by_type()) write_ropes();
    out_.end_object();
    return out_.text();
  }

 private:
  void read_windows() {
    windows_.assign(n_layers_, false);
    const auto types = text_.find("layer_types");
    if (!types || entries_of_layers(*types, n_layers_, n_drafts_) != n_layers_) return;
    for (size_t i = 0; i < n_layers_; ++i) windows_[i] = (*types)[i].as_string() == kSliding;
  }

  void write_member(const std::string& key, const Json& value) {
    if (key == "rope_parameters" && !has_ropes_by_type()) return;
    if (is_one_of(kOfRopes, key) && has_ropes_by_type() && !value.is_null()) {
      fail(value.where(), ": is ", value.brief(), ", expected null beside rope_parameters, which ",
           "transformers goes by alone");
    }
    if (is_one_of(kReplaced, key) || is_one_of(kOfRopes, key)) return;
    const auto* renamed = std::find_if(kRenamed.begin(), kRenamed.end(),
                                       [&](const auto& row) { return row.first == key; });
    if (renamed != kRenamed.end()) {
      check_same(text_.find(key), text_.find(renamed->second));
      if (!text_.has(renamed->second)) out_.member(renamed->second, value);
    } else if (is_one_of(kLists, key) && value.is_array()) {
      out_.key(key).begin_array();
      const size_t n = entries_of_layers(value, n_layers_, n_drafts_);
      for (size_t i = 0; i < n; ++i) out_.value(value[i]);
      out_.end_array();
    } else {
      out_.member(key, value);
    }
  }

  // Numbers of the layers with experts. vLLM and transformers have other defaults.
  std::set<int64_t> listed_experts() const {
    const Json listed = text_.at("moe_layers_enum");
    std::set<int64_t> layers;
    if (listed.is_array()) {
      for (size_t i = 0; i < listed.size(); ++i) layers.insert(listed[i].as_int());
      return layers;
    }
    int64_t number = -1;
    for (const char c : listed.as_string() + ",") {
      const bool digit = c >= '0' && c <= '9';
      if (digit && number < kMostLayers) number = std::max<int64_t>(number, 0) * 10 + (c - '0');
      if (c == ',' && number >= 0) layers.insert(std::exchange(number, -1));
      if (digit || c == ',' || c == ' ') continue;
      fail(listed.where(), ": is ", listed.brief(), ", expected layer numbers between commas");
    }
    return layers;
  }

  // The list of layers with experts becomes mlp_layer_types.
  void write_kinds() {
    const auto types = text_.find("mlp_layer_types");
    if (types && !text_.has("moe_layers_enum")) return;
    const std::set<int64_t> layers = listed_experts();
    if (!types) out_.key("mlp_layer_types").begin_array();
    for (size_t i = 0; i < n_layers_; ++i) {
      const char* kind = layers.contains(static_cast<int64_t>(i)) ? "sparse" : "dense";
      if (!types) {
        out_.value(kind);
      } else if (i < types->size() && (*types)[i].as_string() != kind) {
        fail((*types)[i].where(), ": is ", (*types)[i].brief(), ", but moe_layers_enum makes it ",
             quote(kind), ", which is what vLLM reads");
      }
    }
    if (!types) out_.end_array();
  }

  // Query heads of layers with a window, if the config says them by kind of layer.
  std::optional<Json> window_heads() const {
    const auto other = text_.find("attention_other_setting");
    const auto inside = other ? other->find("num_attention_heads") : std::nullopt;
    const auto own = text_.find("num_sliding_attention_heads");
    check_same(own, inside);
    if (other) {
      check_same(find_any(text_, {"num_attention_groups", "num_key_value_heads"}),
                 other->find("num_attention_groups"));
      check_same(text_.find("head_dim"), other->find("head_dim"));
    }
    return own ? own : inside;
  }

  void write_heads() {
    const auto heads = window_heads();
    if (!heads || text_.has("per_layer_config")) return;
    out_.key("per_layer_config").begin_object();
    for (size_t i = 0; i < n_layers_; ++i) {
      if (!windows_[i]) continue;
      out_.key(cat(i)).begin_object().member("num_attention_heads", *heads).end_object();
    }
    out_.end_object();
  }

  bool has_ropes_by_type() const {
    const auto ropes = text_.find("rope_parameters");
    const auto has = [&](bool window) {
      if (std::find(windows_.begin(), windows_.end(), window) == windows_.end()) return true;
      const auto rope = ropes->find(window ? kSliding : kUnwindowed);
      return rope && rope->is_object();
    };
    return ropes && has(false) && has(true);
  }

  // The number that all layers of a kind have, from a list for all layers or one number.
  std::optional<Json> number_of(const char* key, bool window) const {
    const auto listed = text_.find(key);
    if (!listed || !listed->is_array()) return listed;
    if (entries_of_layers(*listed, n_layers_, n_drafts_) != n_layers_) {
      fail(listed->where(), ": has ", count_of(listed->size(), "number"),
           ", expected one for each of ", count_of(n_layers_, "layer"));
    }
    std::optional<Json> found;
    for (size_t i = 0; i < n_layers_; ++i) {
      const Json number = (*listed)[i];
      if (windows_[i] != window) continue;
      if (found && found->as_double() != number.as_double()) {
        fail(number.where(), ": is ", number.brief(), ", expected ", found->brief(), " like in ",
             found->where(), ": layers of a kind have one rotation");
      }
      if (!found) found = number;
    }
    return found;
  }

  void write_rope(const char* type, bool window) {
    out_.key(type).begin_object();
    const auto theta = number_of("rope_theta", window);
    if (theta) out_.member("rope_theta", *theta);
    if (const auto part = number_of("partial_rotary_factors", window)) {
      out_.member("partial_rotary_factor", *part);
    }
    const auto scaling = window ? std::nullopt : text_.find("rope_scaling");
    if (!scaling || !scaling->has("rope_type")) out_.member("rope_type", "default");
    for (size_t i = 0; scaling && i < scaling->size(); ++i) {
      out_.member(scaling->key(i), scaling->value(i));
    }
    out_.end_object();
  }

  // transformers scales the rotation of layers without a window alone. vLLM goes by a list.
  void check_scaled() const {
    const bool any_window = std::find(windows_.begin(), windows_.end(), true) != windows_.end();
    if (!text_.has("rope_scaling") || !any_window) return;
    const Json only = text_.at("yarn_only_types");
    if (only.is_array() && only.size() == 1 && only[0].as_string() == kUnwindowed) return;
    fail(only.where(), ": is ", only.brief(), ", expected [", quote(kUnwindowed),
         "]: transformers scales the rotation of no other layers");
  }

  void write_ropes() {
    if (const auto ropes = text_.find("rope_parameters"); ropes && ropes->size() > 0) {
      fail(ropes->where(), ": is ", ropes->brief(), ", expected an object for ", quote(kUnwindowed),
           " and one for ", quote(kSliding));
    }
    check_scaled();
    text_.at("rope_theta");  // without it transformers takes 10,000, and vLLM 500,000
    out_.key("rope_parameters").begin_object();
    write_rope(kUnwindowed, false);
    if (std::find(windows_.begin(), windows_.end(), true) != windows_.end()) {
      write_rope(kSliding, true);
    }
    out_.end_object();
  }

  const Json& text_;
  size_t n_layers_ = 0, n_drafts_ = 0;
  std::vector<bool> windows_;  // of each layer
  JsonWriter out_;
};

}  // namespace

Json with_step_terms(const Json& text) {
  if (text.get_string("model_type", "") != "step3p5") return text;
  return Json::parse(StepTerms(text).text(), text.where(), JsonNumbers::python);
}

}  // namespace fp8kv
