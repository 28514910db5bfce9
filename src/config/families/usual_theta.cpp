#include "config/families/usual_theta.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace fp8kv {
namespace {

// Nested language models whose default base differs from that of their row's family.
struct InnerTheta {
  std::string_view model_type;
  double theta;
  double older_theta;  // see RopeStyle
};

// Source: the config classes of transformers 5.24 and 4.57; scripts/check_defaults compares them.
constexpr InnerTheta kInnerThetas[] = {
    {"qwen2_vl", 1e6, 0},        {"qwen2_vl_text", 1e6, 0},   {"qwen2_5_vl", 1e6, 0},
    {"qwen2_5_vl_text", 1e6, 0}, {"qwen3_vl_text", 5e5, 5e6}, {"qwen2_5_omni_text", 1e6, 0},
};

}  // namespace

double usual_theta(const Json& text, const RopeStyle& style) {
  double theta = style.theta, older = style.older_theta;
  const std::string type = text.get_string("model_type", "");
  for (const InnerTheta& row : kInnerThetas) {
    if (row.model_type == type) theta = row.theta, older = row.older_theta;
  }
  if (older == 0) return theta;
  const auto integer = [](double value) { return static_cast<int64_t>(value); };
  throw Error(cat(text.where(), ": the key ", quote(style.theta_key), " is missing"),
              cat("write the one that the model was trained with: transformers 5.24 takes ",
                  integer(theta), ", and 4.57 takes ", integer(older)));
}

}  // namespace fp8kv
