#include <doctest/doctest.h>

#include "config/describe/describe_state.h"

namespace fp8kv {
namespace {

uint64_t bytes_of(const char* config) {
  return state_bytes_of(Json::parse(config, "config.json"));
}

TEST_CASE("describe state: what published models keep of a sequence in a layer") {
  // Qwen3-Next 80B: 32 heads of 128 x 128, and 3 tokens of 8192 channels.
  CHECK(bytes_of(R"({"linear_num_key_heads": 16, "linear_num_value_heads": 32,
      "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4})") ==
        32 * 128 * 128 * 4 + 3 * 8192 * 2);
  // Granite 4: 48 heads of 128 x 64.
  CHECK(bytes_of(R"({"mamba_n_heads": 48, "mamba_d_state": 128, "mamba_d_head": 64,
      "mamba_n_groups": 1, "mamba_d_conv": 4})") ==
        48 * 128 * 64 * 4 + 3 * (48 * 64 + 2 * 128) * 2);
  // Nemotron-H.
  CHECK(bytes_of(R"({"mamba_num_heads": 128, "ssm_state_size": 128, "mamba_head_dim": 64,
      "n_groups": 8, "conv_kernel": 4})") == 128 * 128 * 64 * 4 + 3 * (128 * 64 + 2 * 8 * 128) * 2);
  // MiniMax Text 01: 64 heads of 128 x 128, and no convolution.
  CHECK(bytes_of(R"({"model_type": "minimax_text_01", "num_attention_heads": 64,
      "head_dim": 128})") == 64 * 128 * 128 * 4);
  // LFM2 1.2B: 2 tokens of 2048 channels.
  CHECK(bytes_of(R"({"conv_L_cache": 3, "hidden_size": 2048})") == 2 * 2048 * 2);
}

TEST_CASE("describe state: columns of a head that are what the width leaves to each") {
  CHECK(bytes_of(R"({"mamba_n_heads": 48, "mamba_d_state": 128, "mamba_d_head": "auto",
      "mamba_n_groups": 1, "mamba_d_conv": 4, "hidden_size": 1536, "mamba_expand": 2})") ==
        48 * 128 * 64 * 4 + 3 * (48 * 64 + 2 * 128) * 2);
}

TEST_CASE("describe state: 0 where the config does not say all of it") {
  CHECK(bytes_of("{}") == 0);
  CHECK(bytes_of(R"({"mamba_d_state": 16, "mamba_d_conv": 4})") == 0);
  CHECK(bytes_of(R"({"conv_L_cache": 3})") == 0);
}

}  // namespace
}  // namespace fp8kv
