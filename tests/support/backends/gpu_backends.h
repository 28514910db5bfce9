// The GPU backends for tests. With FP8KV_TEST_SIM these are the two simulators; otherwise, those
// of the modules beside the program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/backend.h"
#include "backend/open/plugin.h"
#include "base/error.h"
#include "support/backends/typed_tensors.h"
#include "support/skip.h"
#ifdef FP8KV_TEST_SIM
#include "kernels/sim/sim.h"
#include "kernels/sim/sim_queues.h"

namespace fp8kv::sim32 {
std::unique_ptr<Backend> make_gpu_backend();
}
namespace fp8kv::sim64 {
std::unique_ptr<Backend> make_gpu_backend();
}
#endif

namespace fp8kv::test {

struct NamedBackend {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};

#ifdef FP8KV_TEST_SIM

// Sizes worth a GPU would take a simulator minutes.
inline constexpr bool kSimulated = true;

// ThreadSanitizer gets only the first, see kernels/sim/CMakeLists.txt.
inline std::vector<NamedBackend> gpu_backends() {
#ifdef FP8KV_TSAN
  return {{"sim32", sim32::make_gpu_backend}};
#else
  return {{"sim32", sim32::make_gpu_backend}, {"sim64", sim64::make_gpu_backend}};
#endif
}

// Sets the order of threads, warps and blocks from here on; see kernels/sim/sim.h. A GPU has its
// own order, so there a call is merely repeated.
inline void set_order(uint64_t seed) {
  sim::set_order(seed);
}
// Sets the order of copies and ops on backends made from here on; see kernels/sim/sim_queues.h.
inline void set_interleaving(uint64_t seed) {
  sim::set_interleaving(seed);
}

#else

inline constexpr bool kSimulated = false;

// The backends that have a device. Prints a note if there are none: ctest then counts the test as
// skipped.
inline std::vector<NamedBackend> gpu_backends() {
  std::vector<NamedBackend> found;
  for (const char* name : {"cuda", "hip", "ptx"}) {
    if (!find_plugin(name)) continue;
    try {
      static_cast<void>(load_plugin(name));
      found.push_back({name, [name] { return load_plugin(name); }});
    } catch (const Error& error) {
      test::skip(error.what());
    }
  }
  if (found.empty()) test::skip("no GPU to run on");
  return found;
}

inline void set_order(uint64_t) {}
inline void set_interleaving(uint64_t) {}

#endif

// Sets that order for as long as it lives.
struct Interleaved {
  explicit Interleaved(uint64_t seed) { set_interleaving(seed); }
  ~Interleaved() { set_interleaving(0); }
};

// Calls work(backend) for each GPU backend.
template <typename Work>
void on_every_backend(Work work) {
  for (const NamedBackend& named : gpu_backends()) {
    CAPTURE(named.name);
    const auto backend = named.make();
    work(*backend);
  }
}

// Types of activations and of caches.
inline constexpr DType kComputeTypes[] = {DType::f32, DType::f16, DType::bf16};
inline std::vector<DType> cache_types() {
  return {DType::f32,         DType::f16,     DType::bf16,       DType::f8_e4m3,
          DType::f8_e4m3fnuz, DType::f8_e5m2, DType::f8_e5m2fnuz};
}

// Calls work(backend, dtype) for each GPU backend and type of activations.
template <typename Work>
void on_every_backend_and_type(Work work) {
  on_every_backend([&](Backend& backend) {
    for (const DType dtype : kComputeTypes) {
      CAPTURE(std::string(dtype_name(dtype)));
      work(backend, dtype);
    }
  });
}

}  // namespace fp8kv::test
