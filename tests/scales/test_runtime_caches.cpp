#include <doctest/doctest.h>

#include "options/kv_dtype.h"
#include "scales/rules/runtime_caches.h"

using namespace fp8kv;

namespace {

const RuntimeCaches* caches_of(const char* text) {
  return find_runtime_caches(choose_runtimes(text)[0]);
}

}  // namespace

TEST_CASE("runtime caches: the row of a version is the newest that is not newer") {
  REQUIRE(caches_of("vllm") != nullptr);
  CHECK(caches_of("vllm") == caches_of("vllm@0.33"));
  CHECK(takes_format(*caches_of("vllm@0.33"), "nvfp4_4over6"));
  CHECK_FALSE(takes_format(*caches_of("vllm@0.27"), "nvfp4_4over6"));
  CHECK_FALSE(takes_format(*caches_of("vllm@0.24"), "int4_per_token_head"));
  CHECK(takes_format(*caches_of("vllm@0.25"), "int4_per_token_head"));
  CHECK(takes_format(*caches_of("vllm@0.20"), "int8_per_token_head"));
  CHECK_FALSE(takes_format(*caches_of("vllm@0.15"), "int8_per_token_head"));
  CHECK_FALSE(caches_of("vllm@0.18")->skips_layers);
  CHECK(caches_of("vllm@0.20")->skips_layers);
  CHECK_FALSE(caches_of("sglang")->skips_layers);
  CHECK(caches_of("transformers") == nullptr);
}

TEST_CASE("runtime caches: every format is one that caches here can have") {
  for (const char* runtime :
       {"vllm", "vllm@0.7.2", "vllm@0.20", "vllm@0.25", "sglang", "tgi", "tensorrt-llm"}) {
    CAPTURE(runtime);
    REQUIRE(caches_of(runtime) != nullptr);
    for (const std::string_view format : caches_of(runtime)->formats) {
      const auto type = kv_dtype_from_name(std::string(format));
      REQUIRE(type.has_value());
      CHECK(kv_dtype_name(*type) == format);
    }
  }
}
