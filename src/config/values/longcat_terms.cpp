#include "config/values/longcat_terms.h"

#include <string>

#include "base/error.h"
#include "config/values/config_values.h"

namespace fp8kv {
namespace {

constexpr const char *kLongcat = "longcat_flash", *kAll = "num_hidden_layers",
                     *kPairs = "num_layers";

bool is_longcat(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  const std::string name = architecture_name(text);
  return type == kLongcat || (type.empty() && (name == "LongcatFlashForCausalLM" ||
                                               name == "LongcatFlashNgramForCausalLM"));
}

}  // namespace

Json with_longcat_terms(const Json& text) {
  if (!is_longcat(text)) return text;
  const Json pairs = text.at(kPairs);
  const int64_t n_layers = 2 * in_range(pairs, kMostLayers / 2);
  if (const auto all = text.find(kAll); all && all->as_int() != n_layers) {
    fail(all->where(), ": is ", all->brief(), ", expected ", n_layers, ", twice ", kPairs,
         ": transformers takes half of it for ", kPairs);
  }
  JsonWriter out;
  out.begin_object();
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string key = text.key(i);
    if (key != kPairs && key != kAll && (key != "model_type" || text.has(key))) {
      out.member(key, text.value(i));
    }
  }
  if (!text.has("model_type")) out.member("model_type", kLongcat);
  out.member(kAll, n_layers);
  out.end_object();
  return Json::parse(out.text(), text.where(), JsonNumbers::python);
}

}  // namespace fp8kv
