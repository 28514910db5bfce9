#include "options/model_names.h"

#include "checkpoint/hub_models.h"

namespace fp8kv {
namespace {

template <typename T>
void find_in(T& options) {
  if constexpr (requires { options.model; }) options.model = model_folder(options.model);
  if constexpr (requires { options.path; }) options.path = find_model(options.path);
  if constexpr (requires { options.source; }) options.source = find_model(options.source);
  if constexpr (requires { options.against; }) {
    if (!options.against.empty()) options.against = model_folder(options.against);
  }
  if constexpr (requires { options.scales; }) {
    if (!options.scales.empty()) options.scales = find_model(options.scales);
  }
  if constexpr (requires {
                  options.a;
                  options.b;
                }) {
    options.a = find_model(options.a);
    options.b = find_model(options.b);
  }
}

}  // namespace

void find_models(Options& options) {
  std::visit([](auto& each) { find_in(each); }, options);
}

}  // namespace fp8kv
