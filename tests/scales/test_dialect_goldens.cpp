// Checkpoints in the form of every tool that writes KV scales, and the scales to read from each.
// Some were written by the tools themselves. See tests/golden/make_dialects.py and
// make_dialects_from_producers.py.
#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "scales/read/find_scales.h"
#include "support/skip.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

fs::path golden_folder() {
  return test::source_dir() / "tests/golden/dialects";
}

// Replaces {path} in the text.
std::string at_path(std::string text, const std::string& path) {
  constexpr std::string_view kPath = "{path}";
  for (size_t at = 0; (at = text.find(kPath, at)) != text.npos; at += path.size()) {
    text.replace(at, kPath.size(), path);
  }
  return text;
}

std::vector<std::string> texts(const Json& array) {
  std::vector<std::string> out;
  for (size_t i = 0; i < array.size(); ++i) out.push_back(array[i].as_string());
  return out;
}

std::vector<std::string> sorted_ids(const FoundScales& found) {
  std::vector<std::string> ids;
  for (const Diagnosis& diagnosis : found.diagnoses) {
    ids.push_back(diagnosis.id);
    CHECK_FALSE(diagnosis.sentence.empty());
    CHECK_FALSE(diagnosis.remedy.empty());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// A row of floats from the hexadecimal digits of their bits.
std::vector<float> from_bits(const Json& row) {
  std::vector<float> values;
  for (const std::string& digits : texts(row)) {
    uint32_t bits = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    REQUIRE((error == std::errc() && end == digits.data() + digits.size()));
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

void check_refusal(const FoundScales& found, const Json& expected, const std::string& path) {
  REQUIRE(found.refusal);
  CHECK(found.refusal->what() == at_path(expected.at("refusal").as_string(), path));
  CHECK(found.refusal->help() == expected.at("help").as_string());
  CHECK(found.scales.layers.empty());
}

void check_scales(const FoundScales& found, const Json& expected) {
  REQUIRE_MESSAGE(!found.refusal, found.refusal->what());
  const Provenance& provenance = found.scales.provenance;
  CHECK(found.dialect == expected.at("dialect").as_string());
  CHECK(provenance.source == found.dialect);
  CHECK(format_name(found.scales.format) == expected.at("format").as_string());
  CHECK(observation_name(provenance.observation) == expected.at("observation").as_string());
  CHECK(provenance.producer == expected.at("producer").as_string());
  CHECK(provenance.producer_version == expected.at("producer_version").as_string());
  if (!provenance.stored_dtype.empty() || found.dialect != "vllm-json") {
    CHECK(provenance.stored_dtype == expected.at("stored_dtype").as_string());
  }
  const Json k = expected.at("k_bits"), v = expected.at("v_bits");
  REQUIRE(found.scales.layers.size() == k.size());
  for (size_t layer = 0; layer < k.size(); ++layer) {
    CHECK(found.scales.layers[layer].k == from_bits(k[layer]));
    CHECK(found.scales.layers[layer].v == from_bits(v[layer]));
  }
}

// Surveys scales. For a file of another kind, returns the error as the refusal.
FoundScales survey_of(const fs::path& path) {
  try {
    return survey_scales(path);
  } catch (const Error& error) {
    FoundScales refused;
    refused.refusal = error;
    return refused;
  }
}

size_t check_all(const char* list) {
  const Json cases = Json::read(golden_folder() / list);
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string& name = cases.key(i);
    CAPTURE(name);
    const Json expected = cases.value(i);
    const std::string path = (golden_folder() / expected.at("path").as_string()).string();
    const FoundScales found = survey_of(path);
    if (expected.has("refusal")) {
      check_refusal(found, expected, path);
    } else {
      check_scales(found, expected);
    }
    CHECK(sorted_ids(found) == texts(expected.at("diagnoses")));
  }
  return cases.size();
}

TEST_CASE("dialects: what each tool writes is read for what it is, or refused with the reason") {
  CHECK(check_all("expected.json") >= 70);
}

TEST_CASE("dialects: what real tools wrote is read for what it is") {
  CHECK(check_all("producers.json") >= 10);
}

TEST_CASE("dialects: a published file of AMMO's scales raises what is true of it, no more") {
  const auto path = test::shared_data("kv-scales/vllm-llama2-7b.kv_cache_scales.json");
  if (!path) return;
  const FoundScales found = scales_at(*path);
  CHECK(found.dialect == "vllm-json");
  REQUIRE(found.scales.layers.size() == 32);
  CHECK(found.scales.layers[1] == LayerScales{{0.0188860222697258f}, {0.0188860222697258f}});
  CHECK(found.scales.layers[29].v[0] == 0.0456891767680645f);
  CHECK(sorted_ids(found) == std::vector<std::string>{"k-before-rope", "kv-fused"});
}

}  // namespace
}  // namespace fp8kv
