#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

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

TEST_CASE("cli plan: a runtime may take a share of the memory") {
  const test::CliResult share =
      plan({"--memory", "1G", "--gpu-memory-utilization", "0.5", "--kv-cache-dtype", "fp8"});
  CHECK(share.out.find("memory      512.0 MiB, 50 % of 1.00 GiB\n") != std::string::npos);
  const test::CliResult half = plan({"--memory", "512M", "--kv-cache-dtype", "fp8", "--json"});
  CHECK(plan({"--memory", "1G", "--gpu-memory-utilization", "0.5", "--kv-cache-dtype", "fp8",
              "--json"})
            .out == half.out);
  CHECK(plan({"--memory", "1G", "--gpu-memory-utilization", "1.5"}).exit_code == 2);
}

TEST_CASE("cli plan: says how long calibrating takes, where it is asked") {
  const test::CliResult text = plan({"--calibration-time"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("calibrate   512 windows of 512 tokens: about ") != std::string::npos);
  const Json json = Json::parse(plan({"--calibration-time", "--json"}).out, "plan");
  const Json& machines = json.at("calibration").at("machines");
  REQUIRE(machines.size() >= 1);
  CHECK(machines[0].at("seconds").as_double() > 0);
  const test::TempDir temp;
  temp.write("m/config.json",
             test::read_file(test::source_dir() / "datasets" / "demo" / "config.json"));
  const test::CliResult bare =
      test::run_cli({"plan", "m", "--calibration-time"}, {.folder = temp.path()});
  CHECK(bare.exit_code == 2);
  CHECK(bare.err.find("has no weights") != std::string::npos);
}

TEST_CASE("cli plan: a context beyond the model's is warned of") {
  CHECK(plan({"--context", "512"}).err == "");
  const test::CliResult result = plan({"--context", "513"});
  CHECK(result.exit_code == 0);
  CHECK(result.err ==
        "warning: --context 513: is longer than the model's context, 512 tokens; runtimes refuse "
        "it or need a RoPE scaling\n");
}

TEST_CASE("cli plan: a folder with a config alone says what the cache costs") {
  const test::TempDir temp;
  temp.write("m/config.json",
             test::read_file(test::source_dir() / "datasets" / "demo" / "config.json"));
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "m"});
    return test::run_cli(more, {.folder = temp.path()});
  };
  const test::CliResult text = run({});
  CHECK(text.exit_code == 0);
  CHECK(text.out == R"(cache       6 layers; 2 KV heads of 32
weights     none here
sequences   of 512 tokens; 1 in a decode step

KV cache  bytes a token  a sequence
float16           1,536   768.0 KiB
fp8_e4m3            768   384.0 KiB

The folder has no weights: what fits beside them, and what a decode step reads, is not known.
)");
  const std::string out = run({"--json"}).out;
  CHECK(out.find("\"weight_bytes\": null,") != out.npos);
  const Json json = Json::parse(out, "stdout");
  CHECK(json.at("plans")[1].at("bytes_per_token").as_int() == 768);
  CHECK_FALSE(json.at("plans")[1].has("gain"));
  const test::CliResult memory = run({"--memory", "80GiB"});
  CHECK(memory.exit_code == 2);
  CHECK(memory.err ==
        "fp8kv: plan: 'm': has no weights, so what weights leave of --memory is not known\n"
        "help: leave out --memory, or fetch the model\n");
  temp.write("m/pytorch_model.bin", "");
  CHECK(run({}).exit_code == 3);
}

TEST_CASE("cli plan: a model without any KV cache has nothing to plan") {
  const test::TempDir temp;
  temp.write("m/config.json",
             R"({"architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h",
                 "hidden_size": 64, "head_dim": 16, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "num_hidden_layers": 1, "torch_dtype": "float16",
                 "max_position_embeddings": 128, "hybrid_override_pattern": "-"})");
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--json"}}) {
    std::vector<std::string> arguments = {"plan", "m"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::CliResult result = test::run_cli(arguments, {.folder = temp.path()});
    CHECK(result.exit_code == 3);
    CHECK(result.out == "");
    CHECK(result.err ==
          "fp8kv: plan: 'm/config.json': no layer of this model holds a KV cache\n"
          "help: there is nothing to plan: FP8 makes no other memory smaller\n");
  }
}

TEST_CASE("cli plan: pointers of git-LFS are no weights yet, and anything else needs them") {
  const test::TempDir temp;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4976698672\n";
  temp.write("m/config.json",
             test::read_file(test::source_dir() / "datasets" / "demo" / "config.json"));
  const auto run = [&](const char* command, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {command, "m"});
    return test::run_cli(more, {.folder = temp.path()});
  };
  const std::string bare = run("plan").out;
  temp.write("m/model-00001-of-00002.safetensors", pointer);
  temp.write("m/model-00002-of-00002.safetensors", pointer);
  temp.write("m/model.safetensors.index.json", R"({"weight_map": {
      "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
  const std::string unknown = ": what fits beside them";
  const std::string figures = bare.substr(0, bare.find("The folder has no weights" + unknown));
  CHECK(run("plan").exit_code == 0);
  CHECK(run("plan").out ==
        figures + "'m/model-00001-of-00002.safetensors' is a git-LFS pointer, not weights" +
            unknown + ", and what a decode step reads, is not known\nbefore 'git lfs pull'.\n");
  const test::CliResult memory = run("plan", {"--memory", "80GiB"});
  CHECK(memory.exit_code == 2);
  CHECK(memory.err ==
        "fp8kv: plan: 'm/model-00001-of-00002.safetensors': is a git-LFS pointer, not the file "
        "itself, so what weights leave of --memory is not known\n"
        "help: leave out --memory, or run 'git lfs pull' in the repository that it is from\n");
  CHECK(run("extract").err ==
        "fp8kv: extract: 'm/model-00001-of-00002.safetensors': is a git-LFS pointer, not the file "
        "itself\nhelp: run 'git lfs pull' in the repository that it is from\n");
  temp.write("m/config.json", pointer);
  for (const char* command : {"plan", "extract", "inspect"}) {
    CAPTURE(command);
    CHECK(run(command).exit_code == 3);
    CHECK(run(command).err == cat("fp8kv: ", command,
                                  ": 'm/config.json': is a git-LFS pointer, not the file itself\n"
                                  "help: run 'git lfs pull' in the repository that it is from\n"));
  }
  temp.write("s.json", pointer);
  CHECK(test::run_cli({"inspect", "s.json"}, {.folder = temp.path()})
            .err.starts_with("fp8kv: inspect: 's.json': is a git-LFS pointer"));
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

// Llama 3 8B as a header and 16 GB of holes, which would take minutes to read.
TEST_CASE("cli plan: of the weights only their sizes are read") {
  const test::TempDir folder;
  constexpr int64_t kDim = 4096, kHidden = 14336, kVocab = 128256, kKv = 1024;
  JsonWriter header;
  header.begin_object();
  int64_t at = 0;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
    int64_t bytes = 2;
    for (const int64_t dim : shape) bytes *= dim;
    header.key(name).begin_object().member("dtype", "BF16");
    header.member("shape", std::span<const int64_t>(shape));
    header.member("data_offsets", std::span<const int64_t>(std::vector{at, at + bytes}));
    header.end_object();
    at += bytes;
  };
  add("model.embed_tokens.weight", {kVocab, kDim});
  for (int i = 0; i < 32; ++i) {
    const std::string layer = cat("model.layers.", i, ".");
    add(layer + "self_attn.q_proj.weight", {kDim, kDim});
    add(layer + "self_attn.k_proj.weight", {kKv, kDim});
    add(layer + "self_attn.v_proj.weight", {kKv, kDim});
    add(layer + "self_attn.o_proj.weight", {kDim, kDim});
    add(layer + "mlp.gate_proj.weight", {kHidden, kDim});
    add(layer + "mlp.up_proj.weight", {kHidden, kDim});
    add(layer + "mlp.down_proj.weight", {kDim, kHidden});
    add(layer + "input_layernorm.weight", {kDim});
    add(layer + "post_attention_layernorm.weight", {kDim});
  }
  add("model.norm.weight", {kDim});
  add("lm_head.weight", {kVocab, kDim});
  const std::string text = header.end_object().text();
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(text.size() >> (8 * i) & 255);
  folder.write("model.safetensors", file + text);
  std::filesystem::resize_file(folder / "model.safetensors",
                               8 + text.size() + static_cast<uint64_t>(at));
  folder.write("config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "torch_dtype": "bfloat16"})");
  const test::CliResult result = test::run_cli({"plan", ".", "--memory", "80GB", "--batch", "64",
                                                "--context", "4096", "--tp", "16", "--json"},
                                               folder.path());
  CHECK(result.err == "");
  const Json json = Json::parse(result.out, "stdout");
  CHECK(json.at("weight_bytes").as_int() == 16060522496);
  CHECK(json.at("kv_heads_per_gpu").as_int() == 1);  // 16 GPUs hold each of 8 heads twice
  CHECK(json.at("plans")[0].at("bytes_per_token").as_int() == 32 * 2 * 128 * 2);
  CHECK(json.at("plans")[1].at("bytes_per_token").as_int() == 32 * 2 * 128);
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
  CHECK(plan({"--memory", "80"}).err ==
        "fp8kv: plan: --memory: '80' has no unit: did you mean '80GiB'?\n"
        "help: see 'fp8kv plan --help'\n");
  CHECK(plan({"--memory", "81920"}).err.find("did you mean '81920MiB'?") != std::string::npos);
  CHECK(plan({"--tp", "4"}).err ==
        "fp8kv: plan: --tp 4: 4 GPUs cannot share a model with 6 attention heads\n"
        "help: every GPU must get as many heads as every other\n");
  CHECK(plan({"--tp", "4"}).exit_code == 2);
  CHECK(plan({"--kv-cache-dtype", "auto,fp9"}).err ==
        "fp8kv: plan: --kv-cache-dtype: 'fp9' is not one of: auto, fp8, float32, float16, "
        "bfloat16, fp8_ds_mla, fp8_e4m3, fp8_e4m3fnuz, fp8_e5m2, int8_per_token_head, "
        "fp8_per_token_head, turboquant_k8v4, nvfp4, nvfp4_4over6, int4_per_token_head, "
        "turboquant_4bit_nc, turboquant_k3v4_nc, turboquant_3bit_nc, octave_k3v4, octave_k3v3, "
        "octave_k3v3_compact, ultraquant_4bit, nvfp4_ds_mla (did you mean 'fp8'?)\n"
        "help: see 'fp8kv plan --help'\n");
}

TEST_CASE("cli plan: every form of a size is understood") {
  const auto memory = [](const std::string& size) {
    const test::CliResult result = plan({"--json", "--memory", size});
    return result.exit_code == 0 ? Json::parse(result.out, "stdout").at("memory_bytes").as_int()
                                 : -1;
  };
  CHECK(memory("80GiB") == 85899345920);
  CHECK(memory("80.0 GiB") == 85899345920);  // in the form that messages print
  CHECK(memory("80G") == 85899345920);
  CHECK(memory("80gb") == 80000000000);
  CHECK(memory("1.5MiB") == 1572864);
  CHECK(memory("2TB") == 2000000000000);
  CHECK(memory("4194304") == 4194304);
  CHECK(memory("4096B") == 4096);
  for (const char* wrong : {"", "0", "GiB", "-1G", "1e3", "8  GiB", "8 ", " 8GiB", "8GiBs", "8x",
                            "nan", "inf", "2000000T", "0.1", "80", "4096"}) {
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
  // Bytes of 10 and 100 tokens: K and V in 2 heads of 8, 2 bytes per element.
  CHECK(result.out.find("bfloat16            128    6.88 KiB") != std::string::npos);
}

}  // namespace
}  // namespace fp8kv
