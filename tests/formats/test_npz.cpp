#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <zlib.h>

#include "formats/npz.h"
#include "scales/scale_tensors.h"
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

// The error of opening the archive or of reading all its arrays.
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

TEST_CASE("npz: a git-LFS pointer is named") {
  CHECK(error_in("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n") ==
        "'z': is a git-LFS pointer, not the file itself");
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

std::string little(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value);
  return out;
}

// A member as the archive's directory describes it, whatever its real contents.
struct TestMember {
  std::string name = "a.npy";
  std::string stored;  // the stored bytes
  uint64_t unpacked = 0;
  uint16_t method = 8;
  uint16_t flags = 0;
};

std::string archive(const std::vector<TestMember>& members, uint64_t shift = 0) {
  std::string file, directory;
  for (const TestMember& member : members) {
    const std::string sizes =
        little(0, 4) + little(member.stored.size(), 4) + little(member.unpacked, 4);
    const std::string common =
        little(20, 2) + little(member.flags, 2) + little(member.method, 2) + little(0, 4) + sizes;
    directory += "PK\1\2" + little(20, 2) + common + little(member.name.size(), 2) + little(0, 12) +
                 little(file.size() + shift, 4) + member.name;
    file += "PK\3\4" + common + little(member.name.size(), 2) + little(0, 2) + member.name +
            member.stored;
  }
  const std::string counts = little(members.size(), 2) + little(members.size(), 2);
  return file + directory + "PK\5\6" + little(0, 4) + counts + little(directory.size(), 4) +
         little(file.size(), 4) + little(0, 2);
}

// `count` zeros as raw deflate, a thousandth of their size.
std::string deflated_zeros(size_t count) {
  const std::string zeros(count, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, count), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zeros.data()));
  stream.avail_in = static_cast<uInt>(count);
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_CASE("npz: what unpacks to far more than scales take is refused, said or not") {
  const std::string bomb = deflated_zeros(size_t{64} << 20);
  CHECK(bomb.size() < 100'000);
  CHECK(error_in(archive({{"a.npy", bomb, uint64_t{64} << 20}})) ==
        "'z': the array 'a': takes 64.0 MiB, too much for scales");
  CHECK(error_in(archive({{"a.npy", bomb, 100}})) ==
        "'z': the array 'a': cannot be unpacked to the 100 bytes that the directory says");
  CHECK(error_in(archive({{"a.npy", deflated_zeros(50), 100}})) ==
        "'z': the array 'a': cannot be unpacked to the 100 bytes that the directory says");
  CHECK(error_in(archive({{"a.npy", std::string(size_t{2} << 20, 'x'), 100}})) ==
        "'z': the array 'a': takes 2.00 MiB, too much for scales");
}

TEST_CASE("npz: members that cannot be what they are called are refused by name") {
  const TestMember stored{"a.npy", "data", 4, 0};
  CHECK(error_in(archive({stored}, 1)) == "'z': the array 'a': is not where the directory says");
  CHECK(error_in(archive({stored}, 1 << 20)) == "'z': the array 'a': does not lie within the file");
  CHECK(error_in(archive({stored, stored})) == "'z': the array 'a' is there twice");
  CHECK(error_in(archive({{"a.npy", "data", 4, 0, 1}})) == "'z': the array 'a': is encrypted");
  CHECK(error_in(archive({{"a.npy", "data", 4, 12}})) ==
        "'z': the array 'a': is packed by method 12, expected 0 or 8");
  CHECK(error_in(archive({{"a\x1b[31m\n../b.npy", "data", 4, 12}})) ==
        "'z': the array 'a\\x1b[31m\\x0a../b': is packed by method 12, expected 0 or 8");
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
