#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "scales/dialects.h"
#include "scales/scale_names.h"
#include "scales/scale_tensors.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

TEST_CASE("dialects: of the rows that share a name, a config fits at most one") {
  std::vector<KvConfig> configs;
  for (const QuantMethod method :
       {QuantMethod::none, QuantMethod::fp8, QuantMethod::compressed_tensors, QuantMethod::modelopt,
        QuantMethod::quark, QuantMethod::trtllm, QuantMethod::ammo, QuantMethod::other}) {
    for (const char* version : {"", "0.23.2", "0.27", "0.42.1", "0.43.0rc1", "1.0"}) {
      for (const bool flag : {false, true}) {
        KvConfig config;
        config.method = method;
        config.version = version;
        config.before_0_7 = flag && method == QuantMethod::compressed_tensors;
        config.by_quark = flag && method == QuantMethod::fp8;
        configs.push_back(config);
      }
      const bool may_be = method == QuantMethod::fp8 || method == QuantMethod::other ||
                          method == QuantMethod::compressed_tensors;
      if (!may_be) continue;
      KvConfig config;
      config.method = method;
      config.version = version;
      config.by_autoround = true;
      configs.push_back(config);
    }
  }
  for (const Dialect& row : dialects()) {
    for (const ScalePattern& pattern : row.patterns) {
      const DialectMatch match = match_scale_name(row.carrier, pattern.rest);
      CHECK(match.of == pattern.of);
      for (const KvConfig& config : configs) {
        CAPTURE(pattern.rest);
        CHECK(std::count_if(match.rows.begin(), match.rows.end(),
                            [&](const Dialect* of) { return of->says(config); }) <= 1);
      }
    }
  }
}

TEST_CASE("dialects: what inject takes out and runtimes trip over is every name that is read") {
  for (const Dialect& row : dialects()) {
    if (row.carrier != Carrier::model_folder) continue;
    for (const ScalePattern& pattern : row.patterns) {
      CAPTURE(pattern.rest);
      CHECK(scale_spelling("model.layers.3." + pattern.rest));
    }
  }
  for (const char* offset : {"self_attn.k_zero_point", "self_attn.v_proj.output_zero_point",
                             "self_attn.k_proj.k_bias"}) {
    CHECK(is_offset(cat("model.layers.3.", offset)));
    CHECK(scale_spelling(cat("model.layers.3.", offset)));
  }
}

TEST_CASE("dialects: where TensorRT-LLM's K was measured follows from ModelOpt's version") {
  const auto observed = [](const std::string& producer, const std::string& version) {
    KvConfig config;
    config.method = QuantMethod::trtllm;
    config.producer = producer;
    config.version = version;
    return find_dialect("trtllm")->observation(config);
  };
  CHECK(observed("modelopt", "0.25.0") == Observation::before_rope);
  CHECK(observed("modelopt", "0.27.0") == Observation::after_rope);
  CHECK(observed("modelopt", "") == Observation::unknown);
  CHECK(observed("", "") == Observation::unknown);
}

TEST_CASE("dialects: the shape of scales is checked before they are read") {
  const auto error = [](const Shape& shape, int64_t n_kv_heads) {
    const ScaleTensor tensor{"t", 0, ScaleOf::k, DType::f32, shape, {}, nullptr, ""};
    return test::error_of([&] { check_scale_form(tensor, n_kv_heads); });
  };
  CHECK(error({0}, 0) ==
        "'t': has the shape [0], expected [], [1] or one number for each of 0 KV heads");
  CHECK(error({70000}, 70000) ==
        "'t': has the shape [70000], expected [], [1] or one number for each of 70,000 KV heads");
}

}  // namespace
}  // namespace fp8kv
