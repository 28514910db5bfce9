#include "support/reference/input_ranges.h"

#include <cmath>

#include <doctest/doctest.h>

#include "base/log.h"
#include "calib/collect.h"
#include "calib/measure/input_ranges.h"
#include "json/json.h"
#include "support/models/family_model.h"
#include "support/places.h"

namespace fp8kv::test {
namespace {

Json goldens() {
  return Json::read(source_dir() / "tests" / "golden" / "input-ranges.json");
}

}  // namespace

std::vector<std::string> input_range_cases() {
  const Json all = goldens();
  std::vector<std::string> names;
  for (size_t i = 0; i < all.size(); ++i) names.push_back(all.key(i));
  return names;
}

void check_input_ranges(const std::string& name, Backend& backend) {
  CAPTURE(name);
  const FamilyModel model(name);
  const Json expected = goldens().at(name);
  InputRanges ranges(backend, model.config);
  Log log(Verbosity::quiet);
  const auto layers = collect_magnitudes({model.checkpoint, model.config, ranges}, {model.ids}, log,
                                         {.inputs = &ranges});
  check_amax(model, layers);
  CHECK(ranges.input_amax().size() == expected.size());
  for (const auto& [tensor, amax] : ranges.input_amax()) {
    CAPTURE(tensor);
    REQUIRE(expected.has(tensor));
    const double reference = expected.at(tensor).as_double();
    CHECK(std::abs(double{amax} - reference) <= kLogitTolerance * reference);
  }
}

}  // namespace fp8kv::test
