#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "data/dataset.h"
#include "data/documents.h"
#include "data/sampling.h"
#include "support/expect_error.h"
#include "support/places.h"
#include "support/program/capture_stderr.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// Encodes each byte as one id, without a prefix.
TextEncoder byte_encoder() {
  const auto encode = [](std::string_view text) {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  };
  return {encode, {}, 256};
}

WindowOptions shuffled(uint64_t seed, uint64_t windows, uint64_t sampled_bytes) {
  WindowOptions options{.max_windows = windows, .seq_len = 4};
  options.shuffle = seed;
  options.sampled_bytes = sampled_bytes;
  return options;
}

constexpr uint64_t kNever = UINT64_MAX;  // larger than any data

Windows read(const std::vector<fs::path>& files, const WindowOptions& options) {
  Log log(Verbosity::quiet);
  return read_windows(files, byte_encoder(), options, log);
}

std::vector<std::string> texts(const Windows& windows) {
  std::vector<std::string> out;
  for (const auto& window : windows.ids) out.emplace_back(window.begin(), window.end());
  return out;
}

// The numbers "0000" to "9999" in four digits each, between `before` and `after`.
std::string numbered(size_t count, const std::string& before, const std::string& after) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const std::string digits = std::to_string(i);
    text += before + std::string(4 - digits.size(), '0') + digits + after;
  }
  return text;
}

std::vector<int> numbers(const Windows& windows) {
  std::vector<int> out;
  for (const std::string& each : texts(windows)) out.push_back(std::stoi(each));
  return out;
}

// Checks that each of found.size() equal parts of the range has one number.
void check_even(const std::vector<int>& found, size_t count) {
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    const double part = static_cast<double>(found[i]) * static_cast<double>(found.size()) /
                        static_cast<double>(count);
    CHECK(part > static_cast<double>(i) - 0.2);
    CHECK(part < static_cast<double>(i) + 1.2);
  }
}

const std::string kLine = "{\"text\": \"";

}  // namespace

TEST_CASE("shuffle: windows are drawn from all of the data, one in each equal part of it") {
  const test::TempDir folder;
  const std::vector<fs::path> files = {folder.write("a.jsonl", numbered(8000, kLine, "\"}\n"))};
  for (const uint64_t sampled_bytes : {kNever, uint64_t{1}}) {
    const Windows windows = read(files, shuffled(7, 100, sampled_bytes));
    REQUIRE(windows.ids.size() == 100);
    check_even(numbers(windows), 8000);
    CHECK(windows.documents == 100);
    CHECK(windows.tokens == 400);
    CHECK(windows.files[0].name == "a.jsonl --shuffle 7");
    CHECK(windows.files[0].bytes == fs::file_size(files[0]));
    // A seed always draws the same windows, and another seed draws others.
    CHECK(texts(read(files, shuffled(7, 100, sampled_bytes))) == texts(windows));
    CHECK(texts(read(files, shuffled(8, 100, sampled_bytes))) != texts(windows));
  }
}

TEST_CASE("shuffle: several files are one, each with its share") {
  const test::TempDir folder;
  const std::string all = numbered(9000, kLine, "\"}\n");
  const size_t line = all.find('\n') + 1;
  const std::vector<fs::path> files = {folder.write("a.jsonl", all.substr(0, 3000 * line)),
                                       folder.write("b.jsonl", all.substr(3000 * line))};
  for (const uint64_t sampled_bytes : {kNever, uint64_t{1}}) {
    const Windows windows = read(files, shuffled(1, 90, sampled_bytes));
    check_even(numbers(windows), 9000);
    CHECK(windows.files.size() == 2);
  }
}

TEST_CASE("shuffle: a text is drawn from where its lines begin, a long record anywhere in it") {
  const test::TempDir folder;
  const fs::path text = folder.write("a.txt", numbered(9000, "", "----\n"));
  const Windows of_text = read({text}, shuffled(3, 50, 1));
  check_even(numbers(of_text), 9000);
  const fs::path record = folder.write(
      "a.jsonl", kLine + numbered(9000, "", "----") + "\"}\n" + numbered(9000, kLine, "\"}\n"));
  const Windows of_record = read({record}, shuffled(3, 60, 1));
  REQUIRE(of_record.ids.size() == 60);
  // The windows of the long record contain numbers or dashes, depending on where they begin.
  const std::vector<std::string> found = texts(of_record);
  CHECK(std::set<std::string>(found.begin(), found.end()).size() > 40);
}

TEST_CASE("shuffle: with fewer windows than asked for all are taken") {
  const test::TempDir folder;
  const fs::path file = folder.write("a.jsonl", numbered(5, kLine, "\"}\n"));
  CHECK(numbers(read({file}, shuffled(3, 50, 1))) == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("shuffle: rows of Parquet files are drawn as lines are") {
  const fs::path golden = test::source_dir() / "tests/golden/parquet";
  Log log(Verbosity::quiet);
  WindowOptions options = shuffled(11, 8, 1);
  options.seq_len = 1;  // makes room for eight windows
  for (const char* name : {"arrow-none.text.parquet", "arrow-delta-byte-array.text.parquet",
                           "arrow-zstd.text.parquet"}) {
    CAPTURE(name);
    std::vector<std::string> records;
    const DataSource source = open_data_for_parts(golden / name);
    const std::vector<uint64_t> places = sample_places(source.text.size(), 8, 11);
    visit_sample(source, places, 0, {{}, [&](const Json& record, double) {
                                       records.push_back(record.at("text").as_string());
                                       return true;
                                     }});
    std::vector<std::string> expected;
    std::vector<std::string> all;
    const DataSource lines = open_data(golden / "text.jsonl");
    for_each_document(lines,
                      {[] { return true; },
                       {},
                       [&](const Json& record) { all.push_back(record.at("text").as_string()); }});
    for (const uint64_t place : places) expected.push_back(all[place * 40 / source.text.size()]);
    CHECK(records == expected);
  }
}

TEST_CASE("shuffle: what cannot be read but from its begin is refused where it is large") {
  const test::TempDir folder;
  const fs::path csv = folder.write("a.csv", numbered(9000, "", "\n"));
  CHECK(test::error_of([&] { read({csv}, shuffled(3, 50, 1)); }, ErrorKind::usage) ==
        cat(quote(csv.string()),
            ": 43.9 KiB of CSV, which --shuffle cannot sample without reading all of it"));
  CHECK(read({folder.write("b.csv", "text\n" + numbered(100, "", "\n"))}, shuffled(3, 50, kNever))
            .ids.size() == 50);
}

TEST_CASE("shuffle: places are one in each part, and never next to each other") {
  const std::vector<uint64_t> places = sample_places(160'000, 100, 5);
  REQUIRE(places.size() == 100);
  for (uint64_t i = 0; i < 100; ++i) {
    CHECK(places[i] >= i * 1600);
    CHECK(places[i] < i * 1600 + 1500);
  }
}

}  // namespace fp8kv
