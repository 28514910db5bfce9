#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "io/npz.h"
#include "io/scale_tensors.h"
#include "support/expect_error.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using namespace std::string_literals;

std::string golden(const char* name) {
  return (test::source_dir() / "tests/golden/dialects" / name).string();
}

Npz of_bytes(const std::string& bytes) {
  return Npz(
      bytes.size(),
      [bytes](uint64_t offset, uint64_t length) { return bytes.substr(offset, length); }, "'z'");
}

// What either of opening and reading everything refuses.
std::string error_in(const std::string& bytes) {
  return test::error_of([&] {
    const Npz npz = of_bytes(bytes);
    for (const std::string& name : npz.names()) npz.read(name);
  });
}

TEST_CASE("npz: arrays are read by name, stored or deflated") {
  for (const char* file :
       {"f8-npz-stored/llama_tp1_rank0.npz", "f8-npz-deflated/llama_tp1_rank0.npz"}) {
    const Npz npz = Npz::open(golden(file));
    CHECK(npz.names().size() == 6);
    const NpyArray array = npz.read("_np:layers:1:attention:kv_cache_scaling_factor");
    CHECK(array.dtype == DType::f32);
    CHECK(array.shape == Shape{1});
    CHECK(scale_numbers(array.bytes, array.dtype) == std::vector<float>{0.0597447f});
    CHECK(npz.read("_np:layers:2:attention:qkv:weight").shape == Shape{4, 4});
    CHECK(test::error_of([&] { npz.read("x"); }) == "'" + golden(file) + "': has no array 'x'");
  }
}

TEST_CASE("npz: a file cut off or damaged anywhere is refused, or reads to the same") {
  const std::string whole = test::read_file(golden("f8-npz-deflated/llama_tp1_rank0.npz"));
  for (size_t length = 0; length < whole.size(); ++length) {
    CHECK(error_in(whole.substr(0, length)) == "'z': is not a zip archive, or its end is missing");
  }
  const Npz original = of_bytes(whole);
  const std::vector<std::string> names = original.names();
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    try {
      const Npz npz = of_bytes(damaged);
      for (const std::string& name : npz.names()) {
        const std::string bytes = npz.read(name).bytes;
        const bool renamed = std::find(names.begin(), names.end(), name) == names.end();
        if (!renamed) CHECK(bytes == original.read(name).bytes);
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > whole.size() / 3);
}

TEST_CASE("npz: an array's header says its type, order and shape") {
  const auto npy = [](const std::string& header, const std::string& data) {
    return "\x93NUMPY\x01"s + '\0' + static_cast<char>(header.size()) + '\0' + header + data;
  };
  const auto error = [&](const std::string& header, const std::string& data) {
    return test::error_of([&] { parse_npy(npy(header, data), "'a'"); });
  };
  const NpyArray one =
      parse_npy(npy("{'descr': '<f2', 'fortran_order': True, 'shape': (1, 2), }", "abcd"), "'a'");
  CHECK(one.dtype == DType::f16);
  CHECK(one.shape == Shape{1, 2});
  CHECK(one.bytes == "abcd");
  CHECK(parse_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "abcd"), "'a'")
            .shape == Shape{});
  CHECK(error("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "abcd") ==
        "'a': is of type '>f4', expected little-endian numbers");
  CHECK(error("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", std::string(16, 'a')) ==
        "'a': is in Fortran's order");
  CHECK(error("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "abcd") ==
        "'a': has 4 bytes of data, its shape [2] takes 8");
  CHECK(error("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "") ==
        "'a': its shape [4611686018427387904, 4] is impossible");
  CHECK(error("{'descr': '<f4', 'shape': (1,)}", "abcd") ==
        "'a': the header is not that of an array");
  CHECK(error("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "abcd") ==
        "'a': the header is not that of an array");
  CHECK(test::error_of([] { parse_npy("NUMPY", "'a'"); }) ==
        "'a': is not an array: it does not begin like one");
}

}  // namespace
}  // namespace fp8kv
