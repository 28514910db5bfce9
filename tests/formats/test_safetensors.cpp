#include <cstring>
#include <sstream>

#include <doctest/doctest.h>

#include "files/file.h"
#include "formats/safetensors.h"
#include "support/expect_error.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

std::string file_of(std::string_view header, std::string_view data) {
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  return cat(bytes, header, data);
}

SafetensorsHeader parse(const std::string& bytes) {
  return parse_safetensors(bytes, bytes.size(), "'w.safetensors'");
}

std::string error_of_header(std::string_view header, std::string_view data = "") {
  return test::error_of([&] { parse(file_of(header, data)); });
}

std::string help_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    return error.help();
  }
  return "";
}

template <typename T>
ConstTensorView view_of(const std::vector<T>& values, DType dtype, const Shape& shape) {
  return {reinterpret_cast<const std::byte*>(values.data()), dtype, shape};
}

}  // namespace

TEST_CASE("safetensors: gives the reference's verdict on its own malformed files") {
  const auto folder = test::shared_data("malformed/safetensors-upstream");
  if (!folder) return;
  std::istringstream lines(read_text(*folder / "expected.tsv"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const std::string file = line.substr(0, line.find('\t'));
    const std::string verdict = line.substr(line.find('\t') + 1);
    CAPTURE(file);
    std::string message;
    try {
      read_safetensors_header(*folder / file);
    } catch (const Error& error) {
      message = error.what();
    }
    if (verdict == "accept") {
      CHECK(message == "");
    } else {
      CHECK(message.starts_with(quote((*folder / file).string()) + ": "));
    }
  }
  CHECK(cases == 16);
}

TEST_CASE("safetensors: reads names, types, shapes, offsets and metadata") {
  const std::string header =
      R"({"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]},)"
      R"("__metadata__":{"format":"pt","x":""},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4],"unknown":[1]}})";
  const SafetensorsHeader parsed = parse(file_of(header, "01234567"));
  REQUIRE(parsed.tensors.size() == 2);
  const uint64_t data = 8 + header.size();
  CHECK(parsed.tensors[0].name == "a");
  CHECK(parsed.tensors[0].dtype == DType::f32);
  CHECK(parsed.tensors[0].shape == Shape{});
  CHECK(parsed.tensors[0].begin == data);
  CHECK(parsed.tensors[0].end == data + 4);
  CHECK(parsed.tensors[1].name == "b");
  CHECK(parsed.tensors[1].shape == Shape{2, 1});
  CHECK(parsed.tensors[1].begin == data + 4);
  CHECK(parsed.tensors[1].end == data + 8);
  CHECK(parsed.has_metadata);
  CHECK(parsed.metadata == std::map<std::string, std::string>{{"format", "pt"}, {"x", ""}});
}

TEST_CASE("safetensors: an empty tensor may lie between two others") {
  const SafetensorsHeader parsed =
      parse(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                    R"("z":{"dtype":"F32","shape":[0,7],"data_offsets":[2,2]},)"
                    R"("b":{"dtype":"F4","shape":[2],"data_offsets":[2,3]}})",
                    "123"));
  REQUIRE(parsed.tensors.size() == 3);
  CHECK(parsed.tensors[1].name == "z");
  CHECK(parsed.tensors[2].name == "b");
  CHECK_FALSE(parsed.has_metadata);
}

TEST_CASE("safetensors: a file without tensors is valid") {
  CHECK(parse(file_of("{}", "")).tensors.empty());
  CHECK(parse(file_of(R"( {"__metadata__":null} )", "")).tensors.empty());
}

TEST_CASE("safetensors: says what is wrong with the first bytes") {
  CHECK(test::error_of([] { parse(""); }) ==
        "'w.safetensors': has 0 bytes, expected at least 8 for the length of a safetensors header");
  CHECK(test::error_of([] { parse("<!DOCTYPE html>"); }) ==
        "'w.safetensors': is not a safetensors file: its first 8 bytes give a header of "
        "5,789,751,444,030,890,300 bytes, expected at most 100,000,000");
  CHECK(test::error_of([] { parse(file_of("{}", "").substr(0, 9)); }) ==
        "'w.safetensors': has 9 bytes, expected 10 for its header alone");
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  CHECK(test::error_of([&] { parse(pointer); }) ==
        "'w.safetensors': is a git-LFS pointer, not the file itself");
  CHECK(help_of(pointer) == "run 'git lfs pull' in the repository that it is from");
}

TEST_CASE("safetensors: says where the header is not what it should be") {
  CHECK(error_of_header("") == "'w.safetensors': header: is not a JSON object");
  CHECK(error_of_header("[]") == "'w.safetensors': header: is not a JSON object");
  CHECK(error_of_header("\xEF\xBB\xBF{}") == "'w.safetensors': header: is not a JSON object");
  CHECK(error_of_header("{\"\xFF\":1}") == "'w.safetensors': header: not valid UTF-8 at byte 2");
  CHECK(error_of_header(R"({"a":)") ==
        "'w.safetensors': header: not valid JSON at line 1, column 6: unexpected end of input; "
        "expected '[', '{', or a "
        "literal");
  using namespace std::string_literals;
  CHECK(error_of_header("{}\0{"s) == "'w.safetensors': header: not valid JSON: byte 2 is NUL");
  CHECK(error_of_header(R"({"__metadata__":{"n":1}})") ==
        "'w.safetensors': header: __metadata__.n: is a number (1), expected a string");
  CHECK(error_of_header(R"({"__metadata__":[]})") ==
        "'w.safetensors': header: __metadata__: is [], expected an object");
}

TEST_CASE("safetensors: refuses a tensor that is there twice") {
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                        R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                        "12") == "'w.safetensors': header: the key 'a' is there twice");
}

TEST_CASE("safetensors: says what is wrong with a tensor's entry") {
  CHECK(error_of_header(R"({"a":1})") == "'w.safetensors': tensor 'a': is 1, expected an object");
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[1]}})") ==
        "'w.safetensors': header: a: the key 'data_offsets' is missing");
  CHECK(error_of_header(R"({"a":{"dtype":"F7","shape":[],"data_offsets":[0,0]}})") ==
        "'w.safetensors': tensor 'a': the dtype 'F7' is not one of safetensors");
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})") ==
        "'w.safetensors': header: a.shape: is 1, expected an array");
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})") ==
        "'w.safetensors': header: a.shape[0]: is -1, expected a whole number");
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[-0,0]}})") ==
        "'w.safetensors': header: a.data_offsets[0]: is -0, expected a whole number");
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})") ==
        "'w.safetensors': header: a.shape[0]: is 1.0, expected a whole number");
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})") ==
        "'w.safetensors': header: a.data_offsets: is [0, 1, 2], expected an array of two numbers");
  CHECK(error_of_header(
            R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615]}})") ==
        "'w.safetensors': header: a.data_offsets[1]: is 18446744073709551615, which is too large");
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})",
                        "1") ==
        "'w.safetensors': tensor 'a': has 9 dimensions, at most 8 are supported");
}

TEST_CASE("safetensors: refuses holes, overlap and sizes that do not fit the shape") {
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12") ==
        "'w.safetensors': tensor 'a': has the data offsets [1, 2], expected them to start at 0, "
        "where the tensor before it ends");
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                        R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                        "123") ==
        "'w.safetensors': tensor 'b': has the data offsets [1, 3], expected them to start at 2, "
        "where the tensor before it ends");
  CHECK(error_of_header(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                        R"("b":{"dtype":"U8","shape":[0],"data_offsets":[1,0]}})",
                        "1") ==
        "'w.safetensors': tensor 'b': has the data offsets [1, 0], expected them to start at 0, "
        "where the tensor before it ends");
  CHECK(error_of_header(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]}})") ==
        "'w.safetensors': tensor 'a': has 20 bytes, expected 24 for F32 of shape [2, 3]");
  CHECK(error_of_header(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "12") ==
        "'w.safetensors': tensor 'a': F4 of shape [3] does not fill whole bytes");
  CHECK(error_of_header(
            R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})") ==
        "'w.safetensors': tensor 'a': U8 of shape [4294967296, 4294967296] is larger than any "
        "file");
  CHECK(error_of_header(
            R"({"a":{"dtype":"F64","shape":[288230376151711744],"data_offsets":[0,0]}})") ==
        "'w.safetensors': tensor 'a': F64 of shape [288230376151711744] is larger than any file");
}

TEST_CASE("safetensors: refuses a file that is shorter or longer than its tensors") {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(error_of_header(header, "1234567") ==
        "'w.safetensors': is cut short: has 69 bytes, expected 70");
  CHECK(error_of_header(header, "1234567890") ==
        "'w.safetensors': has 2 bytes after its last tensor, which ends at byte 70");
  CHECK(help_of(file_of(header, "")) ==
        "the file is damaged or incomplete: download or copy it again");
}

TEST_CASE("safetensors: a header of exactly 100,000,000 bytes is read, one more is refused") {
  const test::TempDir temp;
  std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  header.resize(kMaxSafetensorsHeader, ' ');
  CHECK(read_safetensors_header(temp.write("limit", file_of(header, "1"))).tensors.size() == 1);
  header += ' ';
  const auto over = temp.write("over", file_of(header, "1"));
  CHECK(test::error_of([&] { read_safetensors_header(over); }) ==
        cat(quote(over.string()),
            ": is not a safetensors file: its first 8 bytes give a header of 100,000,001 bytes, "
            "expected at most 100,000,000"));
}

// The time is linear in the number of tensors: 0.13 s for 50,000 on the author's machine. A
// quadratic step would take minutes, so the limit leaves room for sanitizers and busy machines.
TEST_CASE("safetensors: a header with 50,000 tensors is read whole") {
  std::string header = "{";
  for (int i = 0; i < 50'000; ++i) {
    header += cat(i == 0 ? "" : ",", R"("model.layers.)", i / 512, ".mlp.experts.", i % 512,
                  R"(.weight":{"dtype":"U8","shape":[1,1],"data_offsets":[)", i, ",", i + 1, "]}");
  }
  header += "}";
  const std::string bytes = file_of(header, std::string(50'000, 'x'));
  const SafetensorsHeader read = parse(bytes);
  REQUIRE(read.tensors.size() == 50'000);
  CHECK(read.tensors.back().name == "model.layers.97.mlp.experts.335.weight");
}

// Made with safetensors 0.8.0: safetensors.torch.save(tensors, metadata={"format": "pt"}).
TEST_CASE("safetensors: writes the same bytes as the reference") {
  const std::vector<float> b_weight = {1, -2, 0.5f, 3};
  const std::vector<float> a = {0.25f};
  const std::vector<uint16_t> h = {0x3F80, 0x4000, 0x4040};  // bf16 1, 2, 3
  const std::vector<uint16_t> g = {0x3E00};                  // f16 1.5
  const std::vector<int64_t> ids = {7, -1};
  const std::vector<float> e = {};
  const std::vector<uint8_t> f8 = {0x7E};
  const std::string written =
      safetensors_bytes({{"b.weight", view_of(b_weight, DType::f32, {2, 2})},
                         {"a", view_of(a, DType::f32, {})},
                         {"h", view_of(h, DType::bf16, {3})},
                         {"g", view_of(g, DType::f16, {1})},
                         {"ids", view_of(ids, DType::i64, {2})},
                         {"e", view_of(e, DType::f32, {0, 4})},
                         {"f8", view_of(f8, DType::f8_e4m3, {1})}},
                        {{"format", "pt"}});
  using namespace std::string_literals;
  const std::string golden =
      "\xB8\x01\x00\x00\x00\x00\x00\x00"s
      R"({"__metadata__":{"format":"pt"},"ids":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[16,20]},)"
      R"("b.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[20,36]},)"
      R"("e":{"dtype":"F32","shape":[0,4],"data_offsets":[36,36]},)"
      R"("h":{"dtype":"BF16","shape":[3],"data_offsets":[36,42]},)"
      R"("g":{"dtype":"F16","shape":[1],"data_offsets":[42,44]},)"
      R"("f8":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[44,45]}}      )"
      "\x07\x00\x00\x00\x00\x00\x00\x00\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x00\x00\x80\x3E"
      "\x00\x00\x80?\x00\x00\x00\xC0\x00\x00\x00?\x00\x00@@\x80?\x00@@@\x00>~"s;
  CHECK(written == golden);
}

TEST_CASE("safetensors: what is written reads back") {
  const std::vector<uint8_t> values = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"note", "\"\\\n\x01"}};
  const std::string bytes = safetensors_bytes({{"big", view_of(values, DType::i64, {1})},
                                               {"\"quoted\"\t", view_of(values, DType::u8, {2, 3})},
                                               {"scalar", view_of(values, DType::f32, {})}},
                                              metadata);
  const SafetensorsHeader parsed = parse(bytes);
  CHECK(parsed.metadata == metadata);
  REQUIRE(parsed.tensors.size() == 3);
  CHECK(parsed.tensors[0].begin % 8 == 0);
  CHECK(parsed.tensors[0].name == "big");
  CHECK(parsed.tensors[1].name == "scalar");
  CHECK(parsed.tensors[2].name == "\"quoted\"\t");
  CHECK(parsed.tensors[2].shape == Shape{2, 3});
  CHECK(bytes.substr(parsed.tensors[2].begin) == "\1\2\3\4\5\6");
}

TEST_CASE("safetensors: without metadata none is written") {
  const std::vector<uint8_t> values = {9};
  const std::string bytes = safetensors_bytes({{"a", view_of(values, DType::u8, {1})}}, {});
  CHECK_FALSE(parse(bytes).has_metadata);
  CHECK(bytes.substr(8, 5) == R"({"a":)");
}

}  // namespace fp8kv
