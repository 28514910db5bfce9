// The vendor's products, with fake libraries (support/fake_gemm.cpp): cublasLt's interface on the
// simulator with warps of 32, hipBLASLt's on the one with 64.
#include <array>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/backends/linear_case.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

using test::get;
using test::put;
using test::random_values;

struct Environment {
  Environment(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  const char* name_;
};

// A simulated device with its vendor's library.
struct Vendor {
  test::NamedBackend device;
  std::string file;
  std::string name;

  std::unique_ptr<Backend> make() const {
    const Environment library("FP8KV_GEMM", file);
    return device.make();
  }
  int count(const char* of) const {
    void* opened = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(opened);
    return static_cast<std::atomic<int>*>(dlsym(opened, of))->load();
  }
  int choices() const { return count("fake_gemm_choices"); }
  int products() const { return count("fake_gemm_products"); }
};

std::vector<Vendor> vendors() {
  const auto devices = test::gpu_backends();
  return {{devices[0], FP8KV_FAKE_CUBLASLT, "cublasLt 13.1.2"},
          {devices[1], FP8KV_FAKE_HIPBLASLT, "hipBLASLt 1.2.3"}};
}

std::string detail(const Backend& backend, const std::string& name) {
  for (const auto& [key, text] : backend.details()) {
    if (key == name) return text;
  }
  return "";
}

// The first row of x [rows, 64] times a matrix of `out_dim` columns.
std::vector<float> first_row(Backend& backend, int64_t rows, int64_t computed_as,
                             int64_t out_dim = 40) {
  const std::vector<float> x = random_values(1, 512 * 64, DType::bf16);
  const Tensor in =
      put(backend, std::vector<float>(x.begin(), x.begin() + rows * 64), DType::bf16, {rows, 64});
  const Tensor weight =
      put(backend, random_values(2, out_dim * 64, DType::bf16), DType::bf16, {out_dim, 64});
  const Tensor out = backend.allocate(DType::f32, {rows, out_dim});
  backend.compute_as({computed_as, 1});
  backend.linear(in.view(), std::array{Projection{weight.view(), {}, out.view()}});
  std::vector<float> all = get(backend, out.view());
  all.resize(static_cast<size_t>(out_dim));
  return all;
}

}  // namespace

TEST_CASE("gemm library: its products equal double precision, with bias and onto what is there") {
  for (const Vendor& vendor : vendors()) {
    const auto backend = vendor.make();
    const int before = vendor.products();
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      test::check_linear(*backend, dtype, {17, 40, {72, 8, 64}});
      test::check_linear(*backend, dtype, {130, 72, {136}, false, true, false});
      test::check_linear(*backend, dtype, {20, 48, {24, 16}, true, true, false});
      test::check_linear(*backend, dtype, {20, 48, {24}, false, true, true});
    }
    CHECK(vendor.products() - before == 3 * (3 + 1 + 2 + 1));
  }
}

TEST_CASE("gemm library: is left alone for few rows and for what it cannot take") {
  for (const Vendor& vendor : vendors()) {
    const auto backend = vendor.make();
    const int before = vendor.products();
    const int choices = vendor.choices();
    for (const int64_t rows : {1, 4, 5, 16}) {
      test::check_linear(*backend, DType::bf16, {rows, 40, {72}});
    }
    test::check_linear(*backend, DType::bf16, {40, 41, {72}});  // rows of x are not whole vectors
    test::check_linear(*backend, DType::bf16, {40, 40, {70}});  // rows of the result are not
    test::check_linear(*backend, DType::bf16, {40, 40, {72}, true, false, true});  // bias, f32 out
    CHECK(vendor.products() == before);
    CHECK(vendor.choices() == choices);
  }
}

// If one tensor has the biases of several projections, each may begin anywhere in it.
TEST_CASE("gemm library: is left alone where a bias does not begin at a vector") {
  for (const Vendor& vendor : vendors()) {
    const auto backend = vendor.make();
    const int before = vendor.products();
    const auto product = [&](Backend& on, size_t first) {
      const Tensor in = put(on, random_values(1, 40 * 64, DType::bf16), DType::bf16, {40, 64});
      const Tensor weight = put(on, random_values(2, 72 * 64, DType::bf16), DType::bf16, {72, 64});
      const Tensor biases = put(on, random_values(3, 88, DType::bf16), DType::bf16, {88});
      const Tensor out = on.allocate(DType::bf16, {40, 72});
      const ConstTensorView bias{biases.view().data + 2 * first, DType::bf16, {72}};
      on.linear(in.view(), std::array{Projection{weight.view(), bias, out.view()}});
      return get(on, out.view());
    };
    const std::vector<float> expected = product(*vendor.device.make(), 9);
    CHECK(product(*backend, 9) == expected);
    CHECK(vendor.products() == before);
    product(*backend, 8);
    CHECK(vendor.products() - before == 1);
  }
}

TEST_CASE("gemm library: an algorithm is chosen once for what a step is computed as") {
  for (const Vendor& vendor : vendors()) {
    const auto backend = vendor.make();
    const int before = vendor.choices();
    const std::vector<float> alone = first_row(*backend, 1, 64);
    for (const int64_t rows : {2, 17, 63}) CHECK(first_row(*backend, rows, 64) == alone);
    CHECK(vendor.choices() - before == 1);
    CHECK(first_row(*backend, 1, 66) != alone);  // otherwise the test could not see a difference
    const std::vector<float> prompt = first_row(*backend, 3, 512);
    CHECK(first_row(*backend, 512, 0) == prompt);
    CHECK(first_row(*backend, 100, 4096) == prompt);
    CHECK(vendor.choices() - before == 3);
  }
}

TEST_CASE("gemm library: without an algorithm for one of the products ours do them all") {
  for (const Vendor& vendor : vendors()) {
    const Environment narrow("FAKE_GEMM", "narrow");
    const auto backend = vendor.make();
    const int before = vendor.products();
    test::check_linear(*backend, DType::f16, {40, 40, {72, 24}});
    CHECK(vendor.products() == before);
    CHECK(first_row(*backend, 40, 40, 24) == first_row(*vendor.device.make(), 40, 40, 24));
    test::check_linear(*backend, DType::f16, {40, 40, {72}});
    CHECK(vendor.products() - before == 1);
  }
}

TEST_CASE("gemm library: its products are part of a recorded step") {
  for (const Vendor& vendor : vendors()) {
    const auto backend = vendor.make();
    const std::vector<float> x = random_values(1, 20 * 64, DType::bf16);
    const Tensor in = put(*backend, x, DType::bf16, {20, 64});
    const Tensor weight =
        put(*backend, random_values(2, 40 * 64, DType::bf16), DType::bf16, {40, 64});
    const Tensor out = backend->allocate(DType::bf16, {20, 40});
    const auto multiply = [&] {
      backend->linear(in.view(), std::array{Projection{weight.view(), {}, out.view()}});
      backend->activate(Activation::silu, out.view(), out.view());
    };
    backend->compute_as({20, 1});
    multiply();
    const std::vector<float> expected = get(*backend, out.view());
    backend->begin_recording();
    multiply();
    const Recording recording = backend->end_recording();
    const std::vector<std::byte> zeros(out.view().bytes());
    const int before = vendor.products();
    for (int i = 0; i < 2; ++i) {
      backend->copy_in(out.view(), {zeros.data(), DType::bf16, {20, 40}});
      backend->replay(recording);
      CHECK(get(*backend, out.view()) == expected);
    }
    CHECK(vendor.products() - before == 2);
  }
}

TEST_CASE("gemm library: says which it is, or why there is none") {
  for (const Vendor& vendor : vendors()) {
    CHECK(detail(*vendor.make(), "gemm") == vendor.name);
    CHECK(detail(*vendor.device.make(), "gemm") ==
          "own kernels: a simulated device has no library");
    const Environment own("FP8KV_GEMM", "own");
    CHECK(detail(*vendor.device.make(), "gemm") == "own kernels, as FP8KV_GEMM says");
  }
}

TEST_CASE("gemm library: what is named and cannot be used is an error, and so is what fails") {
  for (const Vendor& vendor : vendors()) {
    const std::string library = vendor.name.substr(0, vendor.name.find(' '));
    const auto message = [&](const auto& work) { return test::error_of(work, ErrorKind::device); };
    {
      const Environment none("FP8KV_GEMM", "/nowhere/libgemm.so");
      CHECK(message([&] { vendor.device.make(); }) ==
            "FP8KV_GEMM: /nowhere/libgemm.so: cannot open shared object file: No such file or "
            "directory");
      CHECK(test::help_of([&] { vendor.device.make(); }) ==
            "name a file of the library, or 'own' for the project's own kernels");
    }
    {
      const Environment other("FP8KV_GEMM", "libm.so.6");
      CHECK(message([&] { vendor.device.make(); }) ==
            "libm.so.6: has no " + std::string(library == "cublasLt" ? "cublasLt" : "hipblasLt") +
                "Create");
    }
    {
      const Environment fault("FAKE_GEMM", "create");
      CHECK(message([&] { vendor.make(); }) ==
            vendor.file + ": " + library + " cannot begin: it gives status 1");
    }
    const Environment fault("FAKE_GEMM", "matmul");
    const auto backend = vendor.make();
    const auto multiply = [&] { first_row(*backend, 40, 40); };
    CHECK(message(multiply) == library + " cannot multiply: it gives status 13");
    CHECK(test::help_of(multiply) == "run with FP8KV_GEMM=own to do without it");
  }
}

}  // namespace fp8kv
