#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/collect.h"
#include "checkpoint/model/read_model_config.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/quantised_on_backend.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"
#include "support/models/streamed_model.h"

namespace fp8kv {

TEST_CASE("gpu decode_weights: has the bits of weight_value, whatever the form") {
  for (test::QuantisedCase& quantised : test::all_quantised_cases()) {
    CAPTURE(quantised.name);
    test::on_every_backend([&](Backend& backend) {
      for (const DType dtype : test::kComputeTypes) {
        const test::OnBackend there(backend, quantised);
        const QuantisedMatrix& matrix = there.matrix();
        const Tensor to = backend.allocate(dtype, Shape{matrix.rows, matrix.columns});
        backend.decode_weights(matrix, to.view());
        std::vector<std::byte> found(to.view().bytes());
        backend.download(to.view(), found);
        CHECK(found == test::decoded_on_host(quantised.on_host(), dtype));
      }
    });
  }
}

TEST_CASE("gpu decode_weights: streamed layers of quantised weights give the CPU's statistics") {
  for (const char* name : {"quantised/fp8-moe", "quantised/packed-ordered", "quantised/awq"}) {
    CAPTURE(std::string(name));
    const auto [folder, golden, ids] = test::golden(name);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const ModelConfig config = read_model_config(checkpoint);
    Log log(Verbosity::quiet);
    const auto cpu = make_cpu_backend(2);
    const auto expected = collect_magnitudes({checkpoint, config, *cpu}, {ids}, log);
    test::on_every_backend([&](Backend& backend) {
      const auto layers = collect_magnitudes({checkpoint, config, backend}, {ids}, log);
      REQUIRE(layers.size() == expected.size());
      for (size_t layer = 0; layer < layers.size(); ++layer) {
        for (size_t head = 0; head < layers[layer].k.size(); ++head) {
          const double wanted = expected[layer].k[head].amax;
          CHECK(std::abs(layers[layer].k[head].amax - wanted) < 1e-5 * wanted);
        }
      }
    });
  }
}

}  // namespace fp8kv
