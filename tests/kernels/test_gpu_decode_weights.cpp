#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/collect.h"
#include "checkpoint/read_model_config.h"
#include "support/backends/gpu_backends.h"
#include "support/backends/quantised_case.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"
#include "support/models/streamed_model.h"

namespace fp8kv {
namespace {

// What the pointers of a matrix are to, on a backend.
class OnBackend {
 public:
  OnBackend(Backend& backend, test::QuantisedCase& quantised) : matrix_(quantised.on_host()) {
    matrix_.codes = put(backend, quantised.codes);
    matrix_.scales = put(backend, quantised.scales);
    matrix_.zeros = put(backend, quantised.zeros);
    matrix_.groups = static_cast<const int32_t*>(put(backend, quantised.groups));
    matrix_.overall = static_cast<const float*>(put(backend, quantised.overall));
  }

  const QuantisedMatrix& matrix() const { return matrix_; }

 private:
  const void* put(Backend& backend, const std::vector<uint32_t>& words) {
    if (words.empty()) return nullptr;
    const Shape shape{static_cast<int64_t>(words.size())};
    const ConstTensorView host(reinterpret_cast<const std::byte*>(words.data()), DType::u32, shape);
    memory_.push_back(backend.allocate(DType::u32, shape));
    backend.copy_in(memory_.back().view(), host);
    return memory_.back().view().data;
  }

  QuantisedMatrix matrix_;
  std::vector<Tensor> memory_;
};

}  // namespace

TEST_CASE("gpu decode_weights: has the bits of weight_value, whatever the form") {
  for (test::QuantisedCase& quantised : test::quantised_cases()) {
    CAPTURE(quantised.name);
    test::on_every_backend([&](Backend& backend) {
      for (const DType dtype : test::kComputeTypes) {
        const OnBackend there(backend, quantised);
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
    const auto expected = collect_magnitudes(checkpoint, config, *cpu, {ids}, log);
    test::on_every_backend([&](Backend& backend) {
      const auto layers = collect_magnitudes(checkpoint, config, backend, {ids}, log);
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
