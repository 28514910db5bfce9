#include "model/weights/placing.h"

namespace fp8kv {

void Placing::into(Linear& linear) const {
  if (is_bias) {
    linear.bias = view;
  } else {
    linear.weight = view;
    linear.codes = codes;
  }
}

void Placing::into(std::optional<Linear>& linear) const {
  if (!linear) linear.emplace();
  into(*linear);
}

void Placing::into(Norm& norm) const {
  norm.kind = config.block.norm;
  norm.eps = static_cast<float>(config.norm_eps);
  norm.weight_offset = config.block.norm_plus_one ? 1.0f : 0.0f;
  if (is_bias) {
    norm.bias = view;
  } else {
    norm.weight = view;
  }
}

void Placing::into(std::optional<Norm>& norm) const {
  if (!norm) norm.emplace();
  into(*norm);
}

}  // namespace fp8kv
