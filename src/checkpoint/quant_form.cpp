#include "checkpoint/quant_form.h"

namespace fp8kv {
namespace {

// The name in a config that names its method.
const char* usual_name(QuantMethod method) {
  switch (method) {
    case QuantMethod::compressed_tensors:
      return "compressed-tensors";
    case QuantMethod::fp8:
      return "fp8";
    case QuantMethod::modelopt:
      return "modelopt";
    case QuantMethod::quark:
      return "quark";
    case QuantMethod::none:
    case QuantMethod::trtllm:
    case QuantMethod::ammo:
    case QuantMethod::other:
      return "";
  }
  return "";
}

}  // namespace

std::string QuantConfig::name() const {
  return quant_method.empty() ? usual_name(method) : quant_method;
}

}  // namespace fp8kv
