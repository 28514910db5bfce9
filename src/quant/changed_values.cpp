#include "quant/changed_values.h"

#include <string_view>

#include "base/text.h"

namespace fp8kv {
namespace {

struct Change {
  std::string_view end;
  const char* codes;  // if the module has this tensor, `end` is its scale; null: never
  const char* does;
};

constexpr Change kChanges[] = {
    // Written by ModelOpt 0.47 for AWQ and SmoothQuant.
    {".pre_quant_scale", nullptr, "multiplies what the matrix is given"},
    // Written by ModelOpt 0.47 for SVDQuant.
    {"._svdquant_lora_a", nullptr, "is a part of the matrix that its codes are without"},
    // Written by AutoAWQ 0.2.9, awq/modules/act.py, for Falcon, StarCoder2 and others.
    {".scales", ".qweight", "divides what an activation gives"},
};

}  // namespace

std::string change_by(const std::string& tensor, const FindTensor& find) {
  for (const Change& change : kChanges) {
    if (!tensor.ends_with(change.end)) continue;
    const std::string module = tensor.substr(0, tensor.size() - change.end.size());
    if (change.codes != nullptr && find(module + change.codes) != nullptr) continue;
    return change.does;
  }
  return "";
}

std::string change_at_run_time(const std::optional<Json>& block) {
  const auto transforms = block ? block->find("transform_config") : std::nullopt;
  const auto groups =
      transforms && transforms->is_object() ? transforms->find("config_groups") : std::nullopt;
  for (size_t i = 0; groups && i < groups->size(); ++i) {
    const auto apply = groups->value(i).find("apply");
    for (size_t j = 0; apply && j < apply->size(); ++j) {
      const Json each = (*apply)[j];
      const std::string location = each.get_string("location", "");
      if (location == "weight_input" || location == "weight_output") continue;
      return cat(each.where(), ": changes values at the location ", quote(location),
                 " while the model runs");
    }
  }
  return "";
}

}  // namespace fp8kv
