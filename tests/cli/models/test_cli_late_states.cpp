// Commands on families of late 2026, DeepSeek V4, GLM-5 Next, MiniMax Text 01, Muse Spark and
// Kimi K3, on DiffLlama, whose attention is of another form, and on Zamba 2, whose layers share
// blocks.
#include <string>

#include <doctest/doctest.h>

#include "checkpoint/checkpoint.h"
#include "json/json.h"
#include "support/workplaces/random_place.h"

namespace fp8kv {
namespace {

int64_t bytes_per_token(const test::RandomPlace& place) {
  const test::CliResult plan = place.run({"plan", "m", "--kv-cache-dtype", "fp8", "--json"});
  return Json::parse(plan.out, "stdout").at("plans")[0].at("bytes_per_token").as_int();
}

bool says(const test::CliResult& result, const std::string& words) {
  return result.out.find(words) != std::string::npos;
}

constexpr const char* kNoPlace = "its loader has no place for a scale of any name";

}  // namespace

TEST_CASE("cli late states: scales are measured, injected and read back, and runs are the same") {
  for (const char* golden :
       {"deepseek-v4", "deepseek-v4-published", "glm5-next", "glm5-next-tied", "minimax-01",
        "minimax-text-01", "minimax-m1", "muse-spark", "kimi-k3", "kimi-k3-plain", "diffllama",
        "diffllama-seven", "zamba2", "zamba2-seven", "zamba2-new-keys"}) {
    CAPTURE(std::string(golden));
    const test::RandomPlace place(golden);
    CHECK(place.run({"calibrate", "m", "--data", "d.jsonl", "-o", "m.json"}).exit_code == 0);
    CHECK(place.run({"inject", "m", "--scales", "m.json", "-o", "m-fp8"}).exit_code == 0);
    CHECK(place.run({"extract", "m-fp8", "-o", "back.json"}).exit_code == 0);
    CHECK(place.run({"diff", "m.json", "back.json"}).exit_code == 0);
    CHECK(place.run({"inspect", "m-fp8"}).exit_code == 0);
    CHECK(
        place.run({"eval", "m-fp8", "--data", "d.jsonl", "-q", "--greedy-tokens", "4"}).exit_code ==
        0);
    place.check_same_everywhere();
  }
}

TEST_CASE("cli late states: no command gives scales to vLLM where it has no place for them") {
  const test::RandomPlace place("deepseek-v4");
  const test::CliResult eval =
      place.run({"eval", "m", "--data", "d.jsonl", "-q", "--greedy-tokens", "4"});
  CHECK(says(eval, kNoPlace));
  CHECK_FALSE(says(eval, "fp8kv inject"));
  CHECK(place.run({"calibrate", "m", "--data", "d.jsonl", "-o", "m.json"}).exit_code == 0);
  CHECK(place.run({"inject", "m", "--scales", "m.json", "-o", "m-fp8"}).exit_code == 0);
  const test::CliResult injected =
      place.run({"eval", "m-fp8", "--data", "d.jsonl", "-q", "--greedy-tokens", "4"});
  CHECK(says(injected, "The model carries these scales, but vLLM has no use for them: "));
  CHECK_FALSE(says(injected, "vllm serve"));
  const test::CliResult verified = place.run({"verify", "m-fp8", "--runtime", "vllm"});
  CHECK(verified.exit_code == 1);
  CHECK(says(verified, kNoPlace));
  const Checkpoint checkpoint = Checkpoint::open(place.folder / "m-fp8");
  CHECK(checkpoint.find("model.layers.0.attn.k_proj.k_scale") != nullptr);
}

TEST_CASE("cli late states: commands say where it is not known what vLLM does with scales") {
  const test::RandomPlace place("kimi-k3");
  constexpr const char* kNotRun = "its loader of this family was not run";
  CHECK(place.run({"calibrate", "m", "--data", "d.jsonl", "-o", "m.json"}).exit_code == 0);
  CHECK(place.run({"inject", "m", "--scales", "m.json", "-o", "m-fp8"}).exit_code == 0);
  for (const char* model : {"m", "m-fp8"}) {
    CAPTURE(std::string(model));
    const test::CliResult eval =
        place.run({"eval", model, "--data", "d.jsonl", "-q", "--greedy-tokens", "4"});
    CHECK(says(eval, std::string("Whether it uses the scales is not known: ") + kNotRun));
    CHECK(says(eval, "vllm serve"));
  }
}

TEST_CASE("cli late states: plan counts latents that do not rotate, keys of blocks, and pools") {
  // Two layers, each with a latent of 24 elements. The key of 4 tokens has 10 codes and a scale.
  CHECK(bytes_per_token(test::RandomPlace("glm5-next")) == 2 * (24 + (10 + 4) / 4));
  // Two of four layers with lightning attention: K and V of two heads of 12 elements.
  CHECK(bytes_per_token(test::RandomPlace("minimax-01")) == 2 * (2 * 2 * 12));
  // Three of four layers with K and V of four heads of 16 elements.
  CHECK(bytes_per_token(test::RandomPlace("zamba2")) == 3 * (2 * 4 * 16));
  // Two layers with K and V of two heads of 12 elements.
  CHECK(bytes_per_token(test::RandomPlace("diffllama")) == 2 * (2 * 2 * 12));
  // Two of five layers with a latent of 24 elements, and 8 beside it.
  CHECK(bytes_per_token(test::RandomPlace("kimi-k3")) == 2 * (24 + 8));
}

TEST_CASE("cli late states: quantize makes models that compute") {
  for (const char* golden :
       {"deepseek-v4", "glm5-next", "minimax-01", "muse-spark", "kimi-k3", "diffllama", "zamba2"}) {
    CAPTURE(std::string(golden));
    const test::RandomPlace place(golden);
    const test::CliResult made = place.run({"quantize", "m", "-o", "q", "--scheme", "fp8-dynamic"});
    CAPTURE(made.err);
    CHECK(made.exit_code == 0);
    CHECK(place.run({"eval", "q", "--data", "d.jsonl", "-q", "--greedy-tokens", "4"}).exit_code ==
          0);
  }
}

}  // namespace fp8kv
