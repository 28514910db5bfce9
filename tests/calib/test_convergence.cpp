#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/convergence.h"
#include "support/models/streamed_model.h"

namespace fp8kv {
namespace {

const std::vector<std::vector<int32_t>> kWindows = test::StreamedModel::windows();

// What one run over the first `count` windows finds.
std::vector<LayerMagnitudes> at_once(const test::StreamedModel& model, Backend& backend,
                                     size_t count) {
  Log log(Verbosity::quiet);
  return collect_magnitudes(model.checkpoint, model.config, backend,
                            {kWindows.begin(), kWindows.begin() + static_cast<ptrdiff_t>(count)},
                            log);
}

}  // namespace

TEST_CASE("convergence: each part is what one run over that much text finds") {
  const test::StreamedModel model;
  const auto backend = make_cpu_backend(2);
  Log log(Verbosity::quiet);
  const Convergence found = collect_in_parts(model.checkpoint, model.config, *backend, kWindows,
                                             {0, 1, 1, 3, kWindows.size()}, log);
  CHECK(test::same_bits(found.magnitudes, at_once(model, *backend, kWindows.size())));
  REQUIRE(found.parts.size() == 3);  // counts that do not rise are passed over
  const struct {
    size_t windows;
    uint64_t tokens;
  } expected[] = {{1, 9}, {3, 9 + 7 + 16}, {7, 9 + 7 + 16 + 3 + 12 + 16 + 1}};
  for (size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(found.parts[i].tokens == expected[i].tokens);
    const auto whole = at_once(model, *backend, expected[i].windows);
    REQUIRE(found.parts[i].layers.size() == whole.size());
    for (size_t layer = 0; layer < whole.size(); ++layer) {
      CHECK(found.parts[i].layers[layer] == layer_amax(whole[layer]));
    }
  }
  CHECK(found.parts[0].layers[0] != found.parts[2].layers[0]);
}

}  // namespace fp8kv
