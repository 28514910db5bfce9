#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Arguments = std::vector<std::string>;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The names of commands in the help: first words of the lines under "Commands:".
std::vector<std::string> commands() {
  std::vector<std::string> names;
  bool inside = false;
  for (const std::string& line : lines_of(test::run_cli({"--help"}).out)) {
    if (inside && line.empty()) break;
    if (inside && line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
    if (line == "Commands:") inside = true;
  }
  return names;
}

void check_usage_error(const Arguments& arguments, const std::string& err) {
  const test::CliResult result = test::run_cli(arguments);
  CHECK(result.exit_code == 2);
  CHECK(result.out == "");
  CHECK(result.err == err);
}

std::string readme() {
  return (test::source_dir() / "README.md").string();
}

TEST_CASE("cli: no arguments are an error that lists the commands") {
  check_usage_error({},
                    "fp8kv: no command given; commands are: calibrate, inject, "
                    "quantize, equalize, fit, verify, extract, run, eval, attest, inspect, diff, "
                    "merge, plan, tokenize "
                    "and doctor\nhelp: see 'fp8kv --help'\n");
}

TEST_CASE("cli: an unknown command is named beside the nearest and all there are") {
  check_usage_error({"inspekt", "model"},
                    "fp8kv: 'inspekt' is not a command (did you mean 'inspect'?); commands are: "
                    "calibrate, inject, quantize, equalize, fit, verify, extract, run, eval, "
                    "attest, inspect, diff, "
                    "merge, plan, tokenize and doctor\nhelp: "
                    "see 'fp8kv --help'\n");
  check_usage_error({"--jsn"},
                    "fp8kv: '--jsn' is not a flag of fp8kv itself\nhelp: see 'fp8kv --help'\n");
}

TEST_CASE("cli: all that is missing is said at once") {
  check_usage_error({"calibrate"},
                    "fp8kv: calibrate: MODEL and --data FILE... are missing\n"
                    "help: see 'fp8kv calibrate --help'\n");
  check_usage_error({"inject", "model"},
                    "fp8kv: inject: --scales FILE and --out OUT are missing\n"
                    "help: see 'fp8kv inject --help'\n");
}

TEST_CASE("cli: a misspelt flag is reported before what it leaves missing") {
  check_usage_error({"calibrate", "model", "--dat=x.txt"},
                    "fp8kv: calibrate: '--dat' is not a flag of calibrate (did you mean "
                    "'--data'?)\nhelp: see 'fp8kv calibrate --help'\n");
}

// CLI11 would take the value of an unknown flag for an argument.
TEST_CASE("cli: an unknown flag is blamed, not the value behind it") {
  const struct {
    Arguments arguments;
    std::string message;
  } cases[] = {
      {{"run", "m", "--max-token", "5"},
       "'--max-token' is not a flag of run (did you mean '--max-new-tokens'?)"},
      {{"run", "m", "--ctx_sze", "5"}, "'--ctx_sze' is not a flag of run"},
      {{"plan", "m", "--ctx_sze", "5"},
       "'--ctx_sze' is not a flag of plan (did you mean '--context'?)"},
      {{"run", "m", "-f", "file"}, "'-f' is not a flag of run (did you mean '--prompts'?)"},
      {{"run", "m", "-ngl", "9"}, "'-ngl' is not a flag of run (did you mean '--device'?)"},
      {{"verify", "m", "--for", "vllm"},
       "'--for' is not a flag of verify (did you mean '--runtime'?)"},
      {{"run", "m", "--gpu-memory-utilization", "0.9"},
       "'--gpu-memory-utilization' is not a flag of run (did you mean '--gpu-memory'?)"},
      {{"eval", "m", "--batch_size", "8"},
       "'--batch_size' is not a flag of eval; fp8kv chooses its batches, and they do not "
       "change the result"},
      {{"verify", "m", "--color", "never"},
       "'--color' is not a flag of verify; a terminal has colours unless NO_COLOR is set"},
      {{"calibrate", "m", "--limit", "8"},
       "'--limit' is not a flag of calibrate (did you mean '--samples'?)"},
      {{"eval", "m", "--limit", "8"},
       "'--limit' is not a flag of eval (did you mean '--samples'?)"},
      {{"eval", "m", "--tasks", "gsm8k"},
       "'--tasks' is not a flag of eval (did you mean '--task'?)"},
      {{"eval", "m", "--output_path", "f"},
       "'--output_path' is not a flag of eval (did you mean '--report'?)"},
      {{"run", "--model", "m"}, "'--model' is not a flag of run; the model goes without a flag"},
      {{"run", "m", "--promt", "London"},
       "'--promt' is not a flag of run (did you mean '--prompt'?)"},
      {{"run", "m", "--zzzz", "London"}, "'--zzzz' is not a flag of run"},
      {{"run", "m", "-qx", "London"}, "'-qx' is not a flag of run"},
      {{"run", "m", "-x", "London"}, "'-x' is not a flag of run"},
      {{"eval", "m", "-o", "out"}, "'-o' is not a flag of eval"},
      {{"calibrate", "m", "--dataset", "d"},
       "'--dataset' is not a flag of calibrate (did you mean '--data'?)"},
      {{"calibrate", "m", "-d", "d", "--max-model-len", "2"},
       "'--max-model-len' is not a flag of calibrate (did you mean '--seq-len'?)"},
      {{"inspect", "m", "--max-tokens", "2"}, "'--max-tokens' is not a flag of inspect"},
      {{"inspect", "m", "--runtimes"},
       "'--runtimes' is not a flag of inspect: it is now 'fp8kv verify PATH'"},
  };
  for (const auto& wrong : cases) {
    const std::string& command = wrong.arguments[0];
    CAPTURE(wrong.message);
    check_usage_error(wrong.arguments, "fp8kv: " + command + ": " + wrong.message +
                                           "\nhelp: see 'fp8kv " + command + " --help'\n");
  }
}

// The command line is accepted if the error is about the missing model.
TEST_CASE("cli: what looks like a flag is a value where one is expected") {
  const test::TempDir temp;
  for (const Arguments& more : std::vector<Arguments>{{"--prompt", "--foo"},
                                                      {"-p", "-t"},
                                                      {"-n5", "-p", "a"},
                                                      {"-qn", "5", "-p", "a"},
                                                      {"--prompt=-t"},
                                                      {"--kv_cache_dtype", "FP8", "-p", "a"},
                                                      {"--max_new_tokens=5", "-p", "a"},
                                                      {"--device", "CPU", "-p", "a"}}) {
    Arguments arguments = {"run", "m"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CAPTURE(more[0]);
    const test::CliResult result = test::run_cli(arguments, {.folder = temp.path()});
    CHECK(result.exit_code == 3);
    CHECK(result.err.starts_with("fp8kv: run: 'm': no such folder\n"));
  }
}

TEST_CASE("cli: words are understood in either case, and numbers with leading zeros") {
  const test::TempDir temp;
  const auto inject = [&](const char* target) {
    return test::run_cli({"inject", "m", "-s", "s", "-o", "o", "--for", target},
                         {.folder = temp.path()});
  };
  CHECK(inject("vLLM").err.starts_with("fp8kv: inject: 'm': no such folder\n"));
  CHECK(inject("SGLang").err.starts_with("fp8kv: inject: 'm': no such folder\n"));
  CHECK(inject("vLMM").exit_code == 2);
  const std::string demo = (test::source_dir() / "datasets" / "demo").string();
  const auto words = [&](const char* count) {
    return test::run_cli({"run", demo, "-p", "London", "-q", "-n", count}).out;
  };
  CHECK(words("010") == words("10"));
  CHECK(words("010") != words("8"));
}

TEST_CASE("cli: help and version are commands too") {
  CHECK(test::run_cli({"help"}).out == test::run_cli({"--help"}).out);
  CHECK(test::run_cli({"help"}).exit_code == 0);
  for (const std::string& name : commands()) {
    CAPTURE(name);
    const test::CliResult result = test::run_cli({"help", name});
    CHECK(result.exit_code == 0);
    CHECK(result.err == "");
    CHECK(result.out == test::run_cli({name, "--help"}).out);
  }
  CHECK(test::run_cli({"help", "inspekt"}).exit_code == 2);
  CHECK(test::run_cli({"help", "inspekt"})
            .err.starts_with("fp8kv: 'inspekt' is not a command (did you mean 'inspect'?); "));
  const std::string version = test::run_cli({"--version"}).out;
  CHECK(version.starts_with("fp8kv "));
  CHECK(test::run_cli({"version"}).out == version);
  CHECK(test::run_cli({"-V"}).out == version);
}

TEST_CASE("cli: each wrong value is named with its flag and what is allowed") {
  // The error lists the simulator only if it was built.
  const bool simulator =
      std::filesystem::exists(test::built_program().replace_filename("fp8kv_sim.so"));
  const std::string devices = simulator ? "auto, cpu, cuda, hip, sim" : "auto, cpu, cuda, hip";
  const struct {
    Arguments arguments;
    std::string message;
  } cases[] = {
      {{"calibrate", "m", "--data", "d", "--samples", "0"},
       "--samples: '0' is not a positive whole number, nor auto"},
      {{"calibrate", "m", "--data", "d", "-o", "s", "--samples", "99999999999999999999"},
       "--samples: '99999999999999999999' is more than 1000000000000000"},
      {{"calibrate", "m", "--data", "d", "--samples", "1e3"},
       "--samples: '1e3' is not a positive whole number, nor auto"},
      {{"calibrate", "m", "--data", "d", "--seq-len", "-5"},
       "--seq-len: '-5' is not a positive whole number"},
      {{"calibrate", "m", "--data", "d", "--samples"}, "--samples needs a value: --samples N|auto"},
      {{"calibrate", "m", "--data"}, "--data needs a value: --data FILE..."},
      {{"calibrate", "m", "--data", "d", "--samples", "4", "--samples", "5"},
       "--samples is given 2 times"},
      {{"calibrate", "m", "--data", "d", "--granularity", "heads"},
       "--granularity: 'heads' is not one of: tensor, head (did you mean 'head'?)"},
      {{"calibrate", "m", "--data", "d", "--headroom", "0.5"},
       "--headroom: '0.5' is not a number from 1 to 1024"},
      {{"calibrate", "m", "--data", "d", "--device", "gpu9"},
       "--device: 'gpu9' is not one of: " + devices},
      {{"calibrate", "m", "--data", "d", "-q", "-v"},
       "--quiet and --verbose cannot be given together"},
      {{"calibrate", "m", "--data", ""}, "--data: '' is no path"},
      {{"inject", "m", "-s", "s", "-o", "o", "--link", "sym"},
       "--link: 'sym' is not one of: auto, reflink, hard, copy"},
      {{"inject", "m", "-s", "s", "-o", "o", "--for", "tgj"},
       "--for: 'tgj' is not one of: portable, tgi, tgi-2028, vllm, vllm-rocm, sglang, json (did "
       "you mean "
       "'tgi'?)"},
      {{"run", "m", "--kv-cache-dtype", "fp9"},
       "--kv-cache-dtype: 'fp9' is not one of: auto, fp8, float32, float16, bfloat16, fp8_ds_mla, "
       "fp8_e4m3, fp8_e4m3fnuz, fp8_e5m2, int8_per_token_head, fp8_per_token_head, "
       "turboquant_k8v4, nvfp4, nvfp4_4over6, int4_per_token_head (did you mean 'fp8'?)"},
      {{"run", "m", "--top-p", "0"}, "--top-p: '0' is not a number above 0 and at most 1"},
      {{"run", "m", "--temperature", "nan"}, "--temperature: 'nan' is not a number from 0 to 100"},
      {{"run", "m", "--top-k", "-1"}, "--top-k: '-1' is not a whole number"},
      {{"run", "m", "--top-k", "3000000000"}, "--top-k: '3000000000' is more than 2147483647"},
      {{"run", "m", "--logprobs", "21"}, "--logprobs: '21' is more than 20"},
      {{"run", "m", "--samples-per-prompt", "0"},
       "--samples-per-prompt: '0' is not a positive whole number"},
      {{"run", "m", "--stop", ""}, "--stop: '' is everywhere: no answer would have a text"},
      {{"run", "m", "--stop", "a\xFF"}, "--stop: is not valid UTF-8 at byte 1"},
      {{"run", "m", "--max-batch", "0"}, "--max-batch: '0' is not a positive whole number"},
      {{"run", "m", "--order", "random"}, "--order: 'random' is not one of: input, finished"},
      {{"run", "m", "--gpu-memory", "much"},
       "--gpu-memory: 'much' is not a size, such as 80GiB, 80G (the same), 80GB (decimal; K, M and "
       "T likewise) or a number of bytes"},
      {{"run", "m", "--threads", "5000"}, "--threads: '5000' is more than 1024"},
      {{"run", "m", "--json=maybe"}, "--json takes no value"},
      {{"run", "m", "--prompt", "a", "--prompts", "f"},
       "--prompt and --prompts cannot be given together"},
      {{"run", "m", "-", "--prompt", "a"}, "PROMPT and --prompt cannot be given together"},
      {{"run", "m", "London", "Paris"}, "'Paris' is not expected here"},
      {{"run", "m", "London", "--prompts", "f"}, "PROMPT and --prompts cannot be given together"},
      {{"run", "m", ""}, "'' is no prompt"},
      {{"run", "m", readme()},
       cat(quote(readme()),
           " is a file: prompts of a file go after --prompts, this text after --prompt")},
      {{"run", "m", "--scales", "s", "--unit-scales"},
       "--scales and --unit-scales cannot be given together"},
      {{"run", ""}, "'' is no path"},
      {{"eval", "m", "--data", "d", "--json", "--plot"},
       "--plot and --json cannot be given together"},
      {{"calibrate", "m", "--data", "d", "--json", "--plot"},
       "--plot and --json cannot be given together"},
      {{"inspect", "m", "--json", "--plot"}, "--plot and --json cannot be given together"},
      {{"extract", "m", "--list", "--force"}, "--list and --force cannot be given together"},
      {{"inspect", "a", "b"}, "'b' is not expected here"},
  };
  for (const auto& wrong : cases) {
    const std::string& command = wrong.arguments[0];
    CAPTURE(wrong.message);
    check_usage_error(wrong.arguments, "fp8kv: " + command + ": " + wrong.message +
                                           "\nhelp: see 'fp8kv " + command + " --help'\n");
  }
}

TEST_CASE("cli: a folder with the name of a command is a path") {
  const test::TempDir temp;
  const test::CliResult result = test::run_cli({"inspect", "run"}, {.folder = temp.path()});
  CHECK(result.exit_code == 3);
  CHECK(result.err == "fp8kv: inspect: 'run': no such file or folder\nhelp: check the path\n");
}

TEST_CASE("cli: help says how a command is typed, with defaults and examples") {
  const test::CliResult result = test::run_cli({"extract", "--help"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(result.out ==
        "Usage: fp8kv extract CHECKPOINT [OPTIONS]\n"
        "\n"
        "Read the scales that a model folder or scale file carries\n"
        "\n"
        "Arguments:\n"
        "  CHECKPOINT  Model folder or address (hf://org/name), TensorRT-LLM or AMMO\n"
        "              folder, or scale file\n"
        "\n"
        "Options:\n"
        "  -o, --out FILE            Scale file to write; - for stdout [default: -]\n"
        "      --to fp8kv|vllm-json  What to write: a scale file with all that is known,\n"
        "                            or vLLM's schema alone [default: fp8kv]\n"
        "      --tp N                With vllm-json: the tensor-parallel ranks it is for\n"
        "                            [default: 1]\n"
        "      --list                Print every scale tensor with its dialect, dtype,\n"
        "                            shape and value instead\n"
        "  -f, --force               Replace an existing file\n"
        "      --no-cache            Read a model at an address (hf://, https://) anew,\n"
        "                            and keep nothing of it\n"
        "      --json                Print the result as JSON\n"
        "  -q, --quiet               Only errors on stderr\n"
        "  -v, --verbose             More on stderr\n"
        "  -h, --help                Print this help\n"
        "\n"
        "Examples:\n"
        "  fp8kv extract Llama-3.1-8B-kv -o scales.json\n"
        "  fp8kv extract hf://org/Llama-3.1-8B-kv@main -o scales.json\n"
        "  fp8kv extract --list Qwen3-8B-FP8\n"
        "  fp8kv extract Llama-3.1-8B-kv --to vllm-json --tp 2 -o kv_cache_scales.json\n"
        "\n"
        "Forms that are read (what follows the layer's number in a name):\n"
        "  self_attn.kv_scale\n"
        "  self_attn.{k,v}_scale\n"
        "  kv_cache.scaling_factor\n"
        "  self_attn.{k,v}_proj.output_scale\n"
        "  self_attn.{k,v}_global_scale\n"
        "  self_attn.{k,v}_proj.{k,v}_scale\n"
        "  attention.kv_cache_scaling_factor\n"
        "  attention.{k,v}_cache_scaling_factor\n"
        "  kv_cache_scaling_factor\n"
        "  self_attn.{k,v}_cache.scale\n"
        "  self_attn.attn.{k,v}_scale\n"
        "  self_attn.qkv_proj.{k,v}_scale\n"
        "  self_attn.qkqkv_proj.{k,v}_scale\n"
        "The attention may also be called mixer, attention, attn or self_attention.\n");
}

TEST_CASE("cli: every help fits a terminal, ends with examples and trails no blanks") {
  const std::vector<std::string> names = commands();
  REQUIRE(names.size() >= 5);
  for (const std::string& name : names) {
    CAPTURE(name);
    const test::CliResult result = test::run_cli({name, "-h"});
    CHECK(result.exit_code == 0);
    CHECK(result.err == "");
    CHECK(result.out.starts_with("Usage: fp8kv " + name + " "));
    CHECK(result.out.find("\nExamples:\n  fp8kv " + name + " ") != std::string::npos);
    CHECK(result.out.ends_with("\n"));
    CHECK_FALSE(result.out.ends_with("\n\n"));
    for (const std::string& line : lines_of(result.out)) {
      CHECK(line.size() <= 80);
      CHECK_FALSE(line.ends_with(" "));
    }
  }
}

TEST_CASE("cli: the version is a line, then how it was built") {
  const test::CliResult result = test::run_cli({"--version"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == std::string("fp8kv ") + FP8KV_VERSION);
  CHECK(lines[1].starts_with("build         "));
  // The program and these tests have the same compiler.
#if defined(__clang__)  // which claims to be GCC 4.2
  const std::string compiler = cat(" Clang ", __clang_major__, ".", __clang_minor__, ".");
#else
  const std::string compiler = cat(" ", __GNUC__, ".", __GNUC_MINOR__, ".");
#endif
  CHECK(lines[1].find(compiler) != std::string::npos);
#if defined(__aarch64__)
  CHECK(lines[2].starts_with("instructions  portable, NEON, NEON BF16; "));
#else
  CHECK(lines[2].starts_with("instructions  portable, AVX2, "));
#endif
  CHECK(lines[3].starts_with("libraries     CLI11 "));
  for (const char* name : {"nlohmann_json 3.", "pcre2-8 10.", "md 1.", "z 1.", "libstdc++ "}) {
    CAPTURE(name);
    CHECK(lines[3].find(name) != std::string::npos);
  }
}

TEST_CASE("cli: the version as JSON says the same") {
  const test::CliResult result = test::run_cli({"version", "--json"});
  CHECK(result.exit_code == 0);
  CHECK(test::run_cli({"--version", "--json"}).out == result.out);
  const Json json = Json::parse(result.out, "version");
  CHECK(json.at("schema").as_string() == "fp8kv.version/1");
  CHECK(json.at("version").as_string() == FP8KV_VERSION);
  const std::string text = test::run_cli({"--version"}).out;
  for (const auto& key : {"type", "compiler", "target"}) {
    const std::string value = json.at("build").at(key).as_string();
    CHECK(!value.empty());
    CHECK(text.find(value) != text.npos);
  }
  CHECK(text.find(json.at("best").as_string() + " here") != text.npos);
}

}  // namespace
}  // namespace fp8kv
