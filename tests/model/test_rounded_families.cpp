// RoundingBackend under every architecture, with small random models.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/rounding_backend.h"
#include "core/numbers/half.h"
#include "support/models/family_model.h"
#include "support/models/run_model.h"

namespace fp8kv {

TEST_CASE("families: rounding every op to f16 gives logits that f16 has, and that are not f32's") {
  const auto backend = make_cpu_backend(2);
  RoundingBackend rounding(*backend, DType::f16);
  for (const std::string& name : test::family_cases(1)) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    const auto rounded = test::run_model(model.checkpoint, model.config, rounding, model.ids);
    bool all_fit = true;
    for (const std::vector<float>& row : rounded) {
      for (const float logit : row)
        all_fit = all_fit && f16_to_float(f16_from_float(logit)) == logit;
    }
    CHECK(all_fit);  // false for a NaN, too
    CHECK(rounded != test::run_model(model.checkpoint, model.config, *backend, model.ids));
  }
}

}  // namespace fp8kv
