#include "config/values/inkling_terms.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

constexpr const char* kTextType = "inkling_text";

// Pairs of keys that transformers takes for one number. The first of a pair is left out.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kInklingNames = {
    {{"embedding_multiplier", "logits_mup_width_multiplier"},
     {"model_max_length", "max_position_embeddings"},
     {"num_local_experts", "n_routed_experts"},
     {"sconv_kernel_size", "conv_kernel_size"},
     {"sliding_window_size", "sliding_window"}}};

// Keys that this file writes anew.
constexpr std::array<std::string_view, 14> kInklingReplaced = {"dense_intermediate_size",
                                                               "dense_mlp_idx",
                                                               "intermediate_size",
                                                               "layer_types",
                                                               "local_layer_ids",
                                                               "mlp_layer_types",
                                                               "model_type",
                                                               "moe_intermediate_size",
                                                               "per_layer_config",
                                                               "swa_head_dim",
                                                               "swa_num_attention_heads",
                                                               "swa_num_key_value_heads",
                                                               "swa_v_head_dim",
                                                               "v_head_dim"};

class InklingTerms {
 public:
  explicit InklingTerms(const Json& text) : text_(text) {
    n_layers_ = static_cast<size_t>(in_range(text.at("num_hidden_layers"), kMostLayers));
    if (const auto own = text.find("per_layer_config")) {
      fail(own->where(), ": is ", own->brief(), ", expected null in this architecture");
    }
    for (const auto& [v, k] :
         {std::pair{"v_head_dim", "head_dim"}, std::pair{"swa_v_head_dim", "swa_head_dim"}}) {
      check_same(text.find(v), text.find(k));
    }
    read_windows();
  }

  std::string text() {
    out_.begin_object().member("model_type", kTextType);
    for (size_t i = 0; i < text_.size(); ++i) write_member(text_.key(i), text_.value(i));
    out_.key("layer_types").begin_array();
    for (const bool window : windows_) out_.value(window ? "sliding_attention" : "full_attention");
    out_.end_array();
    if (!mentions(text_, "hidden_act")) out_.member("hidden_act", "silu");
    write_kinds();
    write_widths();
    write_heads();
    out_.end_object();
    return out_.text();
  }

 private:
  void check_size(const Json& list) const {
    if (list.is_array() && list.size() == n_layers_) return;
    fail(list.where(), ": is ", list.brief(), ", expected an array of ",
         count_of(n_layers_, "layer type"));
  }

  // transformers goes by layer_types, and vLLM by local_layer_ids. Without either, transformers
  // gives a window to all layers but every sixth.
  void read_windows() {
    for (size_t i = 0; i < n_layers_; ++i) windows_.push_back((i + 1) % 6 != 0);
    const auto types = text_.find("layer_types"), ids = text_.find("local_layer_ids");
    if (ids) {
      windows_.assign(n_layers_, false);
      for (size_t i = 0; i < ids->size(); ++i) {
        const int64_t last = static_cast<int64_t>(n_layers_) - 1;
        windows_[static_cast<size_t>(in_range((*ids)[i], 0, last))] = true;
      }
    }
    if (!types) return;
    check_size(*types);
    for (size_t i = 0; i < n_layers_; ++i) {
      const std::string type = (*types)[i].as_string();
      const bool window = type == "hybrid_sliding";
      if (!window && type != "hybrid") {
        fail((*types)[i].where(), ": is ", quote(type), ", expected 'hybrid' or 'hybrid_sliding'");
      }
      if (ids && windows_[i] != window) {
        fail((*types)[i].where(), ": is ", quote(type), ", contrary to local_layer_ids at layer ",
             i, ": transformers goes by the one, and vLLM by the other");
      }
      windows_[i] = window;
    }
  }

  void write_member(const std::string& key, const Json& value) {
    if (std::find(kInklingReplaced.begin(), kInklingReplaced.end(), key) != kInklingReplaced.end())
      return;
    const auto* renamed = std::find_if(kInklingNames.begin(), kInklingNames.end(),
                                       [&](const auto& row) { return row.first == key; });
    if (renamed == kInklingNames.end()) {
      out_.member(key, value);
      return;
    }
    check_same(text_.find(key), text_.find(renamed->second));
    if (!mentions(text_, renamed->second)) out_.member(renamed->second, value);
  }

  // transformers goes by mlp_layer_types, and vLLM by dense_mlp_idx.
  void write_kinds() {
    const auto types = text_.find("mlp_layer_types"), first = text_.find("dense_mlp_idx");
    const auto n_dense = static_cast<size_t>(first ? in_range(*first, 0, kLongestContext) : 0);
    if (types) check_size(*types);
    out_.key("mlp_layer_types").begin_array();
    for (size_t i = 0; i < n_layers_; ++i) {
      const char* kind = i < n_dense ? "dense" : "sparse";
      if (!types) {
        out_.value(kind);
        continue;
      }
      const Json own = (*types)[i];
      if (own.as_string() != "dense" && own.as_string() != "sparse") {
        fail(own.where(), ": is ", own.brief(), ", expected 'dense' or 'sparse'");
      }
      if (first && own.as_string() != kind) {
        fail(own.where(), ": is ", own.brief(), ", contrary to dense_mlp_idx at layer ", i,
             ": transformers goes by the one, and vLLM by the other");
      }
      out_.value(own);
    }
    out_.end_array();
  }

  // With dense_intermediate_size, intermediate_size is the width of an expert. Without it, runtimes
  // have other defaults for that width.
  void write_widths() {
    const auto dense = text_.find("dense_intermediate_size");
    const Json width = text_.at("intermediate_size");
    const auto expert = text_.find("moe_intermediate_size");
    if (dense) check_same(width, expert);
    out_.member("intermediate_size", dense ? *dense : width);
    out_.member("moe_intermediate_size", dense ? width : text_.at("moe_intermediate_size"));
  }

  // Runtimes have other defaults for these numbers.
  void write_heads() {
    if (std::find(windows_.begin(), windows_.end(), true) == windows_.end()) return;
    const Json heads = text_.at("swa_num_attention_heads");
    const Json kv_heads = text_.at("swa_num_key_value_heads"), size = text_.at("swa_head_dim");
    out_.key("per_layer_config").begin_object();
    for (size_t i = 0; i < n_layers_; ++i) {
      if (!windows_[i]) continue;
      out_.key(cat(i)).begin_object();
      out_.member("num_attention_heads", heads).member("num_key_value_heads", kv_heads);
      out_.member("head_dim", size).end_object();
    }
    out_.end_object();
  }

  const Json& text_;
  size_t n_layers_ = 0;
  std::vector<bool> windows_;  // of each layer
  JsonWriter out_;
};

bool is_inkling(const Json& text, const Json& config) {
  const std::string type = text.get_string("model_type", "");
  return type == kTextType || type == "inkling_model" ||
         (config.get_string("model_type", "") == "inkling_mm_model" && type != "inkling_mm_model");
}

}  // namespace

Json with_inkling_terms(const Json& text, const Json& config) {
  if (!is_inkling(text, config)) return text;
  return Json::parse(InklingTerms(text).text(), text.where(), JsonNumbers::python);
}

}  // namespace fp8kv
