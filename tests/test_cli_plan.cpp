#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json.h"
#include "support/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/tiny_checkpoint.h"

namespace fp8kv {
namespace {

test::CliResult plan(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"plan",
                                        (test::source_dir() / "datasets" / "demo").string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_cli(arguments, test::source_dir());
}

TEST_CASE("cli plan: the whole text for the demo model") {
  const test::CliResult result =
      plan({"--memory", "1G", "--tp", "2", "--batch", "16", "--kv-cache-dtype", "auto,fp8"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(result.out == R"(cache       6 layers; 1 KV head of 32 on each GPU
weights     5.25 MiB, 2.63 MiB on each of 2 GPUs
memory      1.00 GiB each
sequences   of 512 tokens; 16 in a decode step

KV cache  bytes a token  a sequence  tokens that fit  sequences  read in a step   gain
float16             768   384.0 KiB        1,394,514      2,723        8.63 MiB  1.00x
fp8_e4m3            384   192.0 KiB        2,789,028      5,447        5.63 MiB  1.53x

gain: bytes read in a decode step with a float16 cache over those with this one; what a step that
is bound by memory can gain in speed. Activations and the runtime need memory too: it is not
set aside here.
)");
}

TEST_CASE("cli plan: JSON has the same in bytes") {
  const test::CliResult result =
      plan({"--memory", "8MB", "--context", "100", "--kv-cache-dtype", "fp8_e5m2", "--json"});
  const Json json = Json::parse(result.out, "stdout");
  CHECK(json.at("schema").as_string() == "fp8kv.plan/1");
  CHECK(json.at("memory_bytes").as_int() == 8000000);
  CHECK(json.at("weight_bytes").as_int() == 2 * 2755008);  // FP16 parameters
  REQUIRE(json.at("plans").size() == 1);
  const Json row = json.at("plans")[0];
  CHECK(row.at("kv_cache_dtype").as_string() == "fp8_e5m2");
  CHECK(row.at("bytes_per_token").as_int() == 2 * 6 * 2 * 32);
  CHECK(row.at("free_bytes").as_int() == 8000000 - 2 * 2755008);
  CHECK(row.at("tokens").as_int() == (8000000 - 2 * 2755008) / 768);
  CHECK(row.at("sequences").as_int() == (8000000 - 2 * 2755008) / 76800);
}

TEST_CASE("cli plan: what does not fit is said") {
  CHECK(plan({"--memory", "1MiB"})
            .out.ends_with(
                "the weights alone do not fit: give it more memory, or share it with --tp\n"));
  CHECK(plan({"--memory", "8MB", "--batch", "5"})
            .out.ends_with("a step of 5 does not fit with float16\n"));
}

TEST_CASE("cli plan: wrong flags are refused with what they take") {
  CHECK(
      plan({"--memory", "80Gi"}).err ==
      "fp8kv: plan: --memory: '80Gi' is not a size, such as 80GiB, 80G (the same), 80GB (decimal; "
      "K, M and T likewise) or a number of bytes\n"
      "help: see 'fp8kv plan --help'\n");
  CHECK(plan({"--tp", "4"}).err ==
        "fp8kv: plan: --tp 4 does not fit a model with 6 attention heads\n"
        "help: every GPU must get as many heads as every other\n");
  CHECK(plan({"--tp", "4"}).exit_code == 2);
  CHECK(plan({"--kv-cache-dtype", "auto,fp9"}).err ==
        "fp8kv: plan: --kv-cache-dtype: 'fp9' is not one of: auto, fp8, float32, float16, "
        "bfloat16, fp8_e4m3, fp8_e4m3fnuz, fp8_e5m2 (did you mean 'fp8'?)\n"
        "help: see 'fp8kv plan --help'\n");
}

TEST_CASE("cli plan: every form of a size is understood") {
  const auto memory = [](const std::string& size) {
    const test::CliResult result = plan({"--json", "--memory", size});
    return result.exit_code == 0 ? Json::parse(result.out, "stdout").at("memory_bytes").as_int()
                                 : -1;
  };
  CHECK(memory("80GiB") == 85899345920);
  CHECK(memory("80G") == 85899345920);
  CHECK(memory("80gb") == 80000000000);
  CHECK(memory("1.5MiB") == 1572864);
  CHECK(memory("2TB") == 2000000000000);
  CHECK(memory("4096") == 4096);
  for (const char* wrong :
       {"", "0", "GiB", "-1G", "1e3", "8 GiB", "8GiBs", "8x", "nan", "inf", "2000000T", "0.1"}) {
    CAPTURE(wrong);
    CHECK(memory(wrong) == -1);
  }
}

TEST_CASE("cli plan: a model that cannot be run is planned all the same") {
  const test::TempDir folder;
  test::write_tiny_checkpoint(folder / "model", test::tiny_config());
  folder.write("model/config.json", R"({"architectures": ["NewForCausalLM"], "dtype": "bfloat16",
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32,
      "sliding_window": 10, "layer_types": ["sliding_attention", "full_attention"],
      "max_position_embeddings": 100})");
  const test::CliResult result =
      test::run_cli({"plan", "model", "--kv-cache-dtype", "auto"}, folder.path());
  CHECK(result.err == "");
  CHECK(result.out.starts_with("cache       2 layers, 1 with a window; 2 KV heads of 8\n"));
  // 10 and 100 tokens of K and V in 2 heads of 8, 2 bytes each.
  CHECK(result.out.find("bfloat16            128    6.88 KiB") != std::string::npos);
}

}  // namespace
}  // namespace fp8kv
