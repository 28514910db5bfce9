// Texts and values that tests of scale files start from.
#pragma once

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "json/json.h"
#include "scales/scale_file.h"
#include "support/expect_error.h"

namespace fp8kv::test {

inline KvScales parse(std::string_view text) {
  return parse_scale_file(Json::parse(text, "'s.json'"), "'s.json'");
}

inline std::string error_in(std::string_view text) {
  return error_of([&] { parse(text); });
}

// Replaces the first `what` in `text`. Fails if there is none, so that a test cannot pass by
// accident.
inline std::string with(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

inline std::string plain(std::string_view scaling_factor) {
  return cat(R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn", )",
             R"("scaling_factor": )", scaling_factor, "}}");
}

inline KvScales example() {
  KvScales scales;
  scales.model_type = "llama";
  scales.n_kv_heads = 2;
  scales.layers = {{{0.5f, 0.1f}, {0.25f, 0.75f}}, {{0.03125f, 2.0f}, {1.5f, 1.0f}}};
  Provenance& from = scales.provenance;
  from.source = "fp8kv calibrate";
  from.tool_version = "0.1.0";
  from.observation = Observation::after_rope;
  from.model_fingerprint = "kv-proj-v1:00ff";
  from.compute_dtype = "float16";
  from.headroom = 1.25;
  from.amax = {{{224, 44.8f}, {112, 336}, {3, 4}}, {{14, 896}, {672, 448}, {5, 0}}};
  from.documents = 7;
  from.windows = 9;
  from.tokens = 1234;
  from.data = {{"a \"b\".txt", 5000000000u, "ab12"}};
  return scales;
}

}  // namespace fp8kv::test
