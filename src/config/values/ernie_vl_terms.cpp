#include "config/values/ernie_vl_terms.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

constexpr std::array<std::string_view, 3> kErnieVlTypes = {"ernie4_5_moe_vl", "ernie4_5_vl_moe",
                                                           "ernie4_5_vl_moe_text"};
constexpr std::string_view kLastLayer = "moe_layer_end_index";
constexpr std::array<std::string_view, 4> kErnieVlPairs = {
    "moe_intermediate_size", kLastLayer, "moe_layer_start_index", "moe_num_experts"};

// The last layer with experts, which may be a number behind the model's last layer. -1 means that
// one.
int64_t last_layer(const Json& number, int64_t n_layers) {
  const int64_t last = n_layers - 1;
  return number.as_int() < 0 ? last : std::min(number.as_int(), last);
}

// The number for text. Only the sizes of experts may be others for images.
Json number_for_text(std::string_view key, const Json& pair, int64_t n_layers) {
  if (pair.size() != 2) {
    fail(pair.where(), ": is ", pair.brief(), ", expected two numbers, for text and for images");
  }
  const bool alike =
      key == "moe_intermediate_size" || pair[0].as_int() == pair[1].as_int() ||
      (key == kLastLayer && last_layer(pair[0], n_layers) == last_layer(pair[1], n_layers));
  if (alike) return pair[0];
  fail(pair.where(), ": is ", pair.brief(),
       ", expected the same number for text and for images: models that differ in it are not ",
       "supported");
}

}  // namespace

Json with_ernie_vl_terms(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  if (std::find(kErnieVlTypes.begin(), kErnieVlTypes.end(), type) == kErnieVlTypes.end()) {
    return text;
  }
  const int64_t n_layers = in_range(text.at("num_hidden_layers"), kMostLayers);
  JsonWriter out;
  out.begin_object();
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string key = text.key(i);
    const Json value = text.value(i);
    const bool paired = value.is_array() && std::find(kErnieVlPairs.begin(), kErnieVlPairs.end(),
                                                      key) != kErnieVlPairs.end();
    out.member(key, paired ? number_for_text(key, value, n_layers) : value);
  }
  out.end_object();
  return Json::parse(out.text(), text.where(), JsonNumbers::python);
}

}  // namespace fp8kv
