// The output of extract and its messages for diagnoses, on the checkpoints of
// tests/golden/dialects.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

test::CliResult run(const std::vector<std::string>& arguments) {
  return test::run_cli(arguments, {.folder = test::source_dir() / "tests/golden/dialects"});
}

constexpr const char* kBeforeRope =
    "k-before-rope: K was measured before RoPE, which can make a value 1.41 times as large: it "
    "then "
    "saturates; calibrate: 'fp8kv calibrate' and current tools measure after RoPE\n";

std::vector<std::string> ids_in(const Json& diagnoses) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < diagnoses.size(); ++i) ids.push_back(diagnoses[i].at("id").as_string());
  return ids;
}

using Ids = std::vector<std::string>;

TEST_CASE("cli extract: --list shows every scale tensor, also where they cannot be used") {
  const test::CliResult result = run({"extract", "--list", "f4c-zero"});
  CHECK(result.out ==
        "tensor                            dialect  of  dtype  shape  value\n"
        "model.layers.0.self_attn.k_scale  autofp8  K   F32    []     0.021768708\n"
        "model.layers.0.self_attn.v_scale  autofp8  V   F32    []     0.012232416\n"
        "model.layers.1.self_attn.k_scale  autofp8  K   F32    []     0\n"
        "model.layers.1.self_attn.v_scale  autofp8  V   F32    []     0.013311148\n"
        "model.layers.2.self_attn.k_scale  autofp8  K   F32    []     0.009329446\n"
        "model.layers.2.self_attn.v_scale  autofp8  V   F32    []     0.043656208\n");
  CHECK(result.exit_code == 3);
  CHECK(
      result.err ==
      std::string("warning: 'f4c-zero': autofp8-zero: 1 scale is 0: AutoFP8 divides 448 by the "
                  "largest value in FP16, which overflows where that is below 0.00684; calibrate "
                  "again: a runtime fails on 0, or takes 1 instead\n"
                  "warning: 'f4c-zero': ") +
          kBeforeRope +
          "note: 'f4c-zero': autofp8-rounding: each scale is 1 / (448 / amax) with the quotient "
          "rounded to the model's dtype, as AutoFP8 computes it, which moves it by up to 0.05% in "
          "F16 and 0.4% in BF16; harmless: at most the largest values saturate, by as little\n"
          "fp8kv: extract: 'f4c-zero': 'model.layers.1.self_attn.k_scale': is 0, expected a "
          "positive, finite, normal number\n"
          "help: AutoFP8 divides 448 by the largest value in FP16, and where that value was below "
          "0.00684 it wrote 0: calibrate again\n");
}

TEST_CASE("cli extract: --list names the dialects that are left open, and what is ignored") {
  CHECK(run({"extract", "--list", "f6-no-config", "-q"})
            .out.find("\nmodel.layers.2.self_attn.v_proj.v_scale  modelopt-0.23, modelopt-0.27, "
                      "modelopt, modelopt-nvfp4 or compressed-tensors-proj  "
                      "V   F32    []     0.043666296\n") != std::string::npos);
  const test::CliResult ignored = run({"extract", "--list", "r10-prob_output_scale"});
  CHECK(ignored.exit_code == 0);
  CHECK(ignored.out.find("\nmodel.layers.1.self_attn.q_proj.output_scale  ignored: scales of Q's "
                         "projection, which is not cached  -   F32    []     0.059757236\n") !=
        std::string::npos);
  CHECK(run({"extract", "--list", "unknown-form", "-q"})
            .out.find("ignored: in a form that is not read") != std::string::npos);
  const test::CliResult none = run({"extract", "--list", "no-scales"});
  CHECK(none.exit_code == 3);
  CHECK(none.out == "");
}

TEST_CASE("cli extract: --list as JSON has the values, the diagnoses and the refusal") {
  const test::CliResult result = run({"extract", "--list", "f5c-attn_head", "--json"});
  const Json list = Json::parse(result.out, "stdout");
  CHECK(result.err == "");
  CHECK(list.at("schema").as_string() == "fp8kv.extract.list/1");
  CHECK(list.at("source").as_string() == "f5c-attn_head");
  CHECK(list.at("form").as_string() == "compressed-tensors");
  REQUIRE(list.at("tensors").size() == 6);
  const Json tensor = list.at("tensors")[2];
  CHECK(tensor.at("name").as_string() == "model.layers.1.self_attn.k_scale");
  CHECK(tensor.at("dialect").as_string() == "compressed-tensors");
  CHECK(tensor.at("of").as_string() == "K");
  CHECK(tensor.at("layer").as_int() == 1);
  CHECK(tensor.at("dtype").as_string() == "BF16");
  CHECK(tensor.at("shape").size() == 3);
  CHECK(tensor.at("values")[1].as_double() == 0.0071411133f);
  CHECK(ids_in(list.at("diagnoses")) == Ids{"bf16-rounded"});
  CHECK(list.at("diagnoses")[0].at("harmless").as_bool());
  CHECK_FALSE(list.has("refusal"));
  const Json refused =
      Json::parse(run({"extract", "--list", "missing-layer", "--json"}).out, "stdout");
  CHECK(refused.at("refusal").at("message").as_string() ==
        "'missing-layer': has KV scales for 2 layers, but none for layer 1");
  CHECK(ids_in(refused.at("diagnoses")) ==
        Ids{"missing-layer", "k-before-rope", "autofp8-rounding"});
}

TEST_CASE("cli extract: a scale file can be listed like a checkpoint") {
  CHECK(run({"extract", "--list", "f3-one-rank.json", "-q"}).out ==
        "tensor                       dialect    of       dtype  shape  value\n"
        "kv_cache.scaling_factor.0.0  vllm-json  K and V  F32    []     0.021763394\n"
        "kv_cache.scaling_factor.0.1  vllm-json  K and V  F32    []     0.0597447\n"
        "kv_cache.scaling_factor.0.2  vllm-json  K and V  F32    []     0.043666296\n");
}

TEST_CASE("cli extract: the scale file keeps what the checkpoint tells, and its diagnoses") {
  const test::TempDir temp;
  const std::string out = (temp / "s.json").string();
  const test::CliResult first = run({"extract", "f5c-moving-average", "-o", out, "--json"});
  const Json summary = Json::parse(first.out, "stdout");
  CHECK(summary.at("form").as_string() == "compressed-tensors");
  CHECK(summary.at("producer_version").as_string() == "0.13.0");
  CHECK(ids_in(summary.at("diagnoses")) == Ids{"moving-average-observer", "bf16-rounded"});
  const Json ours = Json::read(out).at("fp8kv");
  CHECK(ours.at("source").as_string() == "compressed-tensors");
  CHECK(ours.at("producer").at("version").as_string() == "0.13.0");
  CHECK(ours.at("stored_dtype").as_string() == "BF16");
  CHECK(ours.at("observation").as_string() == "post_rope");
  CHECK(ours.at("observer").as_string() == "minmax");
  const Json again = Json::parse(run({"inspect", out, "--json"}).out, "stdout");
  CHECK(ids_in(again.at("diagnoses")) == Ids{"moving-average-observer", "bf16-rounded"});
}

TEST_CASE(
    "cli: AutoRound is named, and what its scales are of, by every command that shows scales") {
  const std::string remark =
      "last-batch-observer: the scales are those of the last calibration batch alone: AutoRound "
      "keeps each batch's in place of those before; calibrate: 'fp8kv calibrate' takes the largest "
      "of all windows\n";
  for (const std::string form : {"auto_round", "llm_compressor"}) {
    CAPTURE(form);
    const std::string folder = "real-autoround-0.16.1-" + form;
    const std::string version = form == "auto_round" ? "0.16.1" : "";
    const std::string name = version.empty() ? "AutoRound" : "AutoRound 0.16.1";
    const test::CliResult extracted = run({"extract", folder});
    CHECK(extracted.err.starts_with("warning: '" + folder + "': " + remark));
    const Json ours = Json::parse(extracted.out, "stdout").at("fp8kv");
    CHECK(ours.at("source").as_string() == "autoround");
    CHECK(ours.at("producer").at("name").as_string() == "AutoRound");
    CHECK(ours.at("producer").get_string("version", "") == version);
    const test::CliResult inspected = run({"inspect", folder});
    CHECK(inspected.out.find("\nKV scales         autoround, for float8_e4m3fn, 4 tensors\n"
                             "producer          " +
                             name + "\n") != std::string::npos);
    CHECK(inspected.out.find("\n" + remark) != std::string::npos);
    const Json shown = Json::parse(run({"inspect", folder, "--json"}).out, "stdout").at("scales");
    CHECK(shown.at("producer").as_string() == "AutoRound");
    CHECK(shown.at("producer_version").as_string() == version);
    const test::CliResult verified = run({"verify", folder, "--runtime", "vllm"});
    CHECK(verified.err.starts_with("warning: '" + folder + "': " + remark));
    CHECK(verified.out.find("\nThe scales are by " + name + ", in the dialect autoround.\n") !=
          std::string::npos);
    const Json verdict = Json::parse(run({"verify", folder, "--json"}).out, "stdout");
    CHECK(verdict.at("producer").as_string() == "AutoRound");
    CHECK(verdict.at("producer_version").as_string() == version);
  }
}

TEST_CASE("cli extract: --to vllm-json writes vLLM's schema alone, for every rank") {
  const test::CliResult result =
      run({"extract", "f5c-attn_head", "--to", "vllm-json", "--tp", "2"});
  CHECK(result.exit_code == 0);
  const std::string rank =
      "        \"0\": 0.05908203125,\n"
      "        \"1\": 0.0267333984375,\n"
      "        \"2\": 0.056640625\n";
  CHECK(result.out ==
        "{\n"
        "  \"model_type\": \"llama\",\n"
        "  \"kv_cache\": {\n"
        "    \"dtype\": \"float8_e4m3fn\",\n"
        "    \"scaling_factor\": {\n"
        "      \"0\": {\n" +
            rank +
            "      },\n"
            "      \"1\": {\n" +
            rank +
            "      }\n"
            "    }\n"
            "  }\n"
            "}\n");
  CHECK(result.err.ends_with(
      "note: vllm-json has one scale per layer: the largest of K's and V's is taken\n"));
  const test::CliResult same = run({"extract", "f1-kv_scale", "--to", "vllm-json"});
  CHECK(same.err.find("vllm-json has") == std::string::npos);
  CHECK(Json::parse(same.out, "stdout").at("kv_cache").at("scaling_factor").size() == 1);
}

TEST_CASE("cli extract: ranks are for vllm-json, and a list is not written") {
  const test::CliResult ranks = run({"extract", "f1-kv_scale", "--tp", "2"});
  CHECK(ranks.exit_code == 2);
  CHECK(ranks.err ==
        "fp8kv: extract: --tp is for --to vllm-json alone: other forms have no ranks\n"
        "help: leave out --tp, or write --to vllm-json\n");
  CHECK(run({"extract", "f1-kv_scale", "--list", "-o", "x"}).err ==
        "fp8kv: extract: --out and --list cannot be given together\nhelp: see 'fp8kv extract "
        "--help'\n");
}

TEST_CASE("cli extract: scales for FNUZ are halved, and diff sees no difference") {
  const test::CliResult result = run({"extract", "f1-fnuz"});
  CHECK(Json::parse(result.out, "stdout")
            .at("kv_cache")
            .at("scaling_factor")
            .at("0")
            .at("0")
            .as_double() == 0.021763394f);
  const test::CliResult diff = run({"diff", "f1-fnuz", "f1-kv_scale"});
  CHECK(diff.exit_code == 0);
  CHECK(diff.out.ends_with("\nno layer of 3 differs\n"));
}

TEST_CASE("cli inspect: diagnoses stand below the scales, in every kind of folder") {
  CHECK(
      run({"inspect", "f8-tp2"}).out ==
      "folder            f8-tp2\n"
      "KV scales         trtllm, for float8_e4m3fn, 3 tensors\n"
      "\n"
      "layer      K scale      V scale\n"
      "    0  0.021763394  0.021763394\n"
      "    1    0.0597447    0.0597447\n"
      "    2  0.043666296  0.043666296\n"
      "\n"
      "kv-fused: K and V share one scale, the larger of the two; calibrate to have both: where one "
      "is a thousand times smaller, it vanishes\n");
  const test::CliResult cast = run({"inspect", "f6c-cast"});
  CHECK(cast.exit_code == 0);
  CHECK(
      cast.out.find("\nKV scales         none\n\ncast-without-scales: "
                    "'f6c-cast/hf_quant_config.json' says that the cache is FP8, but there are no "
                    "scales (ModelOpt's fp8_cast writes none): a runtime uses 1; calibrate, and "
                    "inject what you get\n") != std::string::npos);
  CHECK(run({"inspect", "f6b-floored"})
            .out.find("\n\nfloored: 5 of 6 scales are exactly 1, to which the tool raises all that "
                      "are smaller; calibrate: where the true scale is far smaller, small values "
                      "vanish\n\n") != std::string::npos);
  const Json json = Json::parse(run({"inspect", "f8-tp2", "--json"}).out, "stdout");
  CHECK(json.at("kind").as_string() == "scales");
  CHECK(ids_in(json.at("diagnoses")) == Ids{"kv-fused"});
}

TEST_CASE("cli inspect: what is remarkable about scales that cannot be used is still said") {
  const test::CliResult result = run({"inspect", "negative-sentinel"});
  CHECK(result.exit_code == 3);
  CHECK(result.out == "");
  CHECK(
      result.err.starts_with("warning: 'negative-sentinel': negative-sentinel: 2 scales are "
                             "negative, which is how runtimes mark one that was never loaded; "
                             "calibrate again: a runtime takes 1 instead\n"));
}

TEST_CASE("cli inspect: a K norm makes scales from before it worthless") {
  CHECK(run({"inspect", "k-norm"})
            .out.find("\n\nk-before-rope: K was measured at its projection, before the model's K "
                      "norm and RoPE: its scale has nothing to do with what is cached; ") !=
        std::string::npos);
}

TEST_CASE("cli extract: what inject wrote is told for what it is, in every form") {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "model", test::tiny_config());
  temp.write("s.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
      "scaling_factor": {"0": {"0": 0.021763393655419350, "1": 0.05974470078945160}}},
      "fp8kv": {"schema": "fp8kv.scales/1", "format": "float8_e4m3fn", "granularity": "tensor",
      "observation": "post_rope",
      "k_scale": [[0.02176339365541935], [0.00932965986430645]],
      "v_scale": [[0.012233189307153225], [0.0597447007894516]]}})");
  const auto in = [&](const std::vector<std::string>& arguments) {
    return test::run_cli(arguments, {.folder = temp.path()});
  };
  for (const std::string target : {"tgi", "tgi-2028", "vllm", "vllm-rocm", "sglang", "json"}) {
    CAPTURE(target);
    REQUIRE(in({"inject", "model", "-s", "s.json", "-o", target, "--for", target}).exit_code == 0);
    const test::CliResult back = in({"extract", target, "-o", target + ".json", "--json"});
    REQUIRE(back.exit_code == 0);
    const Json summary = Json::parse(back.out, "stdout");
    CHECK(summary.at("observation").as_string() == "post_rope");
    CHECK(summary.at("producer").as_string() == (target == "json" ? "" : "fp8kv"));
    CHECK(ids_in(summary.at("diagnoses")) == (target == "tgi-2028" ? Ids{"kv-fused"} : Ids{}));
  }
}

TEST_CASE("cli diff: what is remarkable about either side is said, and in the JSON") {
  const test::CliResult result = run({"diff", "f4c-f16", "f2-k_scale", "--json"});
  CHECK(result.exit_code == 1);
  const Json json = Json::parse(result.out, "stdout");
  CHECK(json.at("of_a").at("form").as_string() == "autofp8");
  CHECK(ids_in(json.at("of_a").at("diagnoses")) == Ids{"k-before-rope", "autofp8-rounding"});
  CHECK(json.at("of_b").at("form").as_string() == "k_scale/v_scale");
  CHECK(ids_in(json.at("of_b").at("diagnoses")).empty());
  CHECK(result.err.starts_with(std::string("warning: 'f4c-f16': ") + kBeforeRope));
}

}  // namespace
}  // namespace fp8kv
