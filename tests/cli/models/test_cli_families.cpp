// Calibrates models whose layers differ in their caches. Merging two calibrations equals one of
// both texts. Scales injected into a model can be extracted again.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "support/models/family_model.h"
#include "support/models/small_tokenizer.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

const std::string kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

// Every letter is one token.
std::string tokenizer_json() {
  test::SmallTokenizer tokenizer;
  tokenizer.vocab = R"({"<unk>":0)";
  for (size_t i = 0; i < kLetters.size(); ++i) {
    tokenizer.vocab += cat(",\"", kLetters[i], "\":", i + 1);
  }
  for (size_t i = kLetters.size() + 1; i < 77; ++i) {
    tokenizer.vocab += cat(",\"<", i, ">\":", i);
  }
  tokenizer.vocab += "}";
  tokenizer.merges = "[]";
  return tokenizer.text();
}

std::string text(uint64_t seed) {
  Rng rng(seed);
  std::string out;
  for (int i = 0; i < 600; ++i) {
    out += kLetters[static_cast<size_t>(rng.uniform() * static_cast<double>(kLetters.size()))];
  }
  return out;
}

struct Place {
  explicit Place(const char* name) : model(name) {
    model.folder.write("model/tokenizer.json", tokenizer_json());
    folder.write("a.txt", text(1));
    folder.write("b.txt", text(2));
  }
  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, folder.path());
  }
  void calibrate(const char* policy, const std::vector<std::string>& data, const char* out) const {
    std::vector<std::string> arguments = {"calibrate", path(), "--policy", policy, "--seq-len",
                                          "60",        "-o",   out,        "-q",   "--data"};
    arguments.insert(arguments.end(), data.begin(), data.end());
    const test::CliResult result = run(arguments);
    CHECK(result.err == "");
    REQUIRE(result.exit_code == 0);
  }
  std::string path() const { return model.checkpoint.folder().string(); }

  test::FamilyModel model;
  test::TempDir folder;
};

void check_merged(const char* name, const char* policy) {
  CAPTURE(std::string(name));
  CAPTURE(std::string(policy));
  const Place place(name);
  place.calibrate(policy, {"a.txt"}, "a.json");
  place.calibrate(policy, {"b.txt"}, "b.json");
  place.calibrate(policy, {"a.txt", "b.txt"}, "both.json");
  const test::CliResult merged = place.run({"merge", "a.json", "b.json", "-o", "m.json", "-q"});
  CHECK(merged.err == "");
  REQUIRE(merged.exit_code == 0);
  CHECK(place.run({"diff", "a.json", "b.json", "-q"}).exit_code == 1);
  CHECK(place.run({"diff", "m.json", "both.json"}).exit_code == 0);
  const test::CliResult injected =
      place.run({"inject", place.path(), "--scales", "m.json", "--for", "vllm", "-o", "out", "-q"});
  CHECK(injected.err == "");
  REQUIRE(injected.exit_code == 0);
  REQUIRE(place.run({"extract", "out", "-o", "x.json", "-q"}).exit_code == 0);
  const test::CliResult same = place.run({"diff", "m.json", "x.json"});
  CHECK(same.err == "");
  CHECK(same.exit_code == 0);
}

TEST_CASE("cli families: two calibrations are merged, compared and put into the model") {
  for (const char* name : {"gemma4", "gemma4-experts-k-is-v", "gemma3n", "gpt-oss", "qwen3-next"}) {
    for (const char* policy : {"amax", "head"}) check_merged(name, policy);
  }
  check_merged("deepseek-v3", "amax");
}

TEST_CASE("cli families: layers with other numbers of heads have as many scales each") {
  const Place place("gemma4-k-is-v");
  place.calibrate("head", {"a.txt"}, "a.json");
  const Json file = Json::read(place.folder / "a.json").at("fp8kv");
  CHECK(file.at("granularity").as_string() == "head");
  CHECK(file.at("model").at("layer_kv_heads").brief() == "[2, 1, 2, 1]");
  for (size_t layer = 0; layer < 4; ++layer) {
    CHECK(file.at("k_scale")[layer].size() == (layer % 2 == 0 ? 2 : 1));
  }
  const test::CliResult evaluated = place.run(
      {"eval", place.path(), "--data", "b.txt", "--scales", "a.json", "--seq-len", "60", "-q"});
  CHECK(evaluated.err == "");
  CHECK(evaluated.exit_code == 0);
  // A layer with two heads refuses a list with the scale of one.
  std::string text = test::read_file(place.folder / "a.json");
  const size_t key = text.find("layer_kv_heads");
  REQUIRE(key != text.npos);
  text[text.find('1', key)] = '2';
  place.folder.write("bad.json", text);
  CHECK(place.run({"inspect", "bad.json"}).exit_code == 3);
}

}  // namespace
}  // namespace fp8kv
