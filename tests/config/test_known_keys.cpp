#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "base/text.h"
#include "config/architectures.h"
#include "config/describe/window_keys.h"
#include "config/foreign_keys.h"
#include "config/known_keys.h"
#include "support/models/family_model.h"
#include "support/models/tiny_config.h"

namespace fp8kv {
namespace {

using test::error_of_config;
using test::llama_with;
using test::parse_config;

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("known keys: what nobody knows is named, whatever its value, in the order of the file") {
  const auto unknown = [](const std::string& text) { return parse_config(text).unknown_keys; };
  CHECK(unknown(llama_with("use_cache", "true")).empty());
  CHECK(unknown(llama_with("frobnicate", "0.5")) == Keys{"frobnicate"});
  CHECK(unknown(llama_with("frobnicate", "null")) == Keys{"frobnicate"});
  CHECK(unknown(json_with_member(llama_with("zeta", "{\"x\": 1}"), "alpha", "1")) ==
        Keys{"zeta", "alpha"});
}

TEST_CASE("known keys: a rope's own are named with their path, and a rope of another type's too") {
  const auto unknown = [](const char* key, const char* rope) {
    return parse_config(llama_with(key, rope)).unknown_keys;
  };
  CHECK(unknown("rope_scaling", R"({"type": "linear", "factor": 2, "blend": 1})") ==
        Keys{"rope_scaling.blend"});
  CHECK(unknown("rope_parameters", R"({"rope_type": "default", "factor": 2})") ==
        Keys{"rope_parameters.factor"});
  CHECK(unknown("rope_scaling", R"({"type": "linear", "factor": 2, "finetuned": true})").empty());
}

TEST_CASE("known keys: keys of windows that the family does not read are named as unknown") {
  const auto unknown = [](const char* key, const char* value) {
    const std::string config = test::config_with("MixtralForCausalLM", "sliding_window", "4");
    return parse_config(json_with_member(config, key, value)).unknown_keys;
  };
  CHECK(unknown("layer_types", R"(["full_attention", "full_attention"])") == Keys{"layer_types"});
  CHECK(unknown("max_window_layers", "1") == Keys{"max_window_layers"});
  CHECK(unknown("sliding_window_pattern", "2") == Keys{"sliding_window_pattern"});
  CHECK(unknown("use_sliding_window", "false") == Keys{"use_sliding_window"});
  CHECK(unknown("use_sliding_window", "null").empty());
  CHECK(parse_config(test::config_with("MixtralForCausalLM", "max_window_layers", "1"))
            .unknown_keys.empty());
}

TEST_CASE("known keys: each family with windows has a row that says which of their keys it reads") {
  for (const Architecture& row : architectures()) {
    if (!row.windows) continue;
    CAPTURE(row.name);
    const auto found = [&](const WindowReader& reader) {
      return reader.model_type == row.model_type && reader.architecture == row.name;
    };
    const std::span<const WindowReader> readers = window_readers();
    CHECK(std::count_if(readers.begin(), readers.end(), found) == 1);
  }
}

// Unknown keys of the language model come first, then those of the outer model.
TEST_CASE("known keys: they are looked for in a model with more parts as well") {
  JsonWriter text;
  text.value(test::family_golden("gemma3-vision").at("config"));
  const std::string outer = json_with_member(text.text(), "shape_of_images", "3");
  CHECK(parse_config(text.text()).unknown_keys.empty());
  CHECK(parse_config(outer).unknown_keys == Keys{"shape_of_images"});
}

// Command R7B's configs have keys for Cohere's servers, such as the place of the embedding and its
// sharing with lm_head.
TEST_CASE("known keys: those of published configs of Command R7B ask for nothing") {
  JsonWriter text;
  text.value(test::family_golden("cohere2").at("config"));
  std::string config = text.text();
  for (const auto& [key, value] : {std::pair{"cache_implementation", R"("hybrid")"},
                                   {"layer_switch", "4"},
                                   {"order_of_interleaved_layers", R"("local_attn_first")"},
                                   {"position_embedding_type", R"("rope_gptj")"},
                                   {"rotary_pct", "1.0"},
                                   {"use_embedding_sharing", "true"},
                                   {"use_gated_activation", "true"},
                                   {"use_parallel_block", "true"},
                                   {"use_parallel_embedding", "true"}}) {
    config = json_with_member(config, key, value);
  }
  CHECK(parse_config(config).unknown_keys.empty());
}

TEST_CASE("known keys: one that changes what other models compute may only ask for nothing") {
  CHECK(error_of_config(llama_with("scale_emb", "12")) ==
        "config.json: scale_emb: is 12, which changes what other models compute, and is not read "
        "for LlamaForCausalLM");
  for (const ForeignKey& row : foreign_keys()) {
    const std::string key(row.key);
    CAPTURE(key);
    for (const std::string_view harmless : row.harmless) {
      CAPTURE(std::string(harmless));
      CHECK(parse_config(llama_with(key, std::string(harmless))).unknown_keys.empty());
    }
    CHECK(parse_config(llama_with(key, "null")).unknown_keys.empty());
    if (key == "attention_bias" || key == "mlp_bias") continue;  // Llama reads them
    const bool text = !row.harmless.empty() && row.harmless[0].starts_with('"');
    const bool flag = !row.harmless.empty() && row.harmless[0] == "false";
    const bool negated = !row.harmless.empty() && row.harmless[0] == "true";
    const char* value = text ? "\"other\"" : flag ? "true" : negated ? "false" : "3";
    CHECK_MESSAGE(error_of_config(llama_with(key, value)).find(key) != std::string::npos, value);
  }
}

TEST_CASE("known keys: every key of what transformers writes for the families is known") {
  for (const std::string& name : test::family_cases()) {
    CAPTURE(name);
    JsonWriter text;
    text.value(test::family_golden(name).at("config"));
    CHECK(join(parse_config(text.text()).unknown_keys) == "");
  }
}

}  // namespace fp8kv
