// The candidates, texts and outputs of eval, and the memory that it takes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/program/eval_demo.h"
#include "support/program/run_cli.h"
#include "support/sanitizers.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using test::eval;
using test::eval_little;
using test::eval_windows;
using test::kDemo;
using test::kText;
using test::kTokens;
using test::kWindows;
using test::line;

TEST_CASE("cli eval: scales of a file, of other text and of the model itself") {
  const test::TempDir folder;
  folder.write("a.txt", "London is the capital of England. It was a foggy Friday.");
  const test::CliResult other = eval_little(
      folder, {"--calibrate-on", "a.txt", "--greedy-tokens", "0", "--policy", "amax*2"});
  CHECK(other.exit_code == 3);  // one window, and --samples asks for two
  CHECK(other.err ==
        "fp8kv: eval: 'a.txt' gives 1 of the 2 windows asked for\n"
        "help: add data, or pass --samples 1 to use what is there\n");
  folder.write("one.jsonl", "{\"input_ids\": [5]}\n{\"input_ids\": [6]}\n");
  const test::CliResult nothing =
      test::run_cli({"eval", kDemo, "--data", "one.jsonl", "--samples", "2", "-q"}, folder.path());
  CHECK(nothing.exit_code == 3);
  CHECK(nothing.err ==
        "fp8kv: eval: 'one.jsonl': no window has two tokens, so there is nothing to predict\n");
  std::vector<std::string> calibrate = {"calibrate", kDemo, "--data", kText,    "--samples", "2",
                                        "--seq-len", "32",  "-o",     "s.json", "-q"};
  REQUIRE(test::run_cli(calibrate, folder.path()).exit_code == 0);
  const test::CliResult file =
      eval_little(folder, {"--scales", "s.json", "--greedy-tokens", "0", "--json"});
  const Json json = Json::parse(file.out, "stdout");
  CHECK(json.at("candidates")[0].at("name").as_string() == "fp8_e4m3 s.json");
  CHECK(!json.has("calibration"));
}

TEST_CASE("cli eval: held-out text is set beside what calibration found, part by part") {
  const test::TempDir folder;
  std::string text(test::read_file(kText));
  folder.write("a.txt", text.substr(0, 60000));
  folder.write("b.txt", text.substr(60000, 20000));
  const test::CliResult result =
      test::run_cli({"eval", kDemo, "--data", "b.txt", "--calibrate-on", "a.txt", "--samples", "8",
                     "--seq-len", "128", "--greedy-tokens", "0", "--table", "-q"},
                    folder.path());
  CHECK(result.exit_code == 0);
  const size_t at = result.out.find("\nLargest magnitude after so many tokens");
  REQUIRE(at != std::string::npos);
  CHECK(line(result.out.substr(at), 2) ==
        "layer           128        256      1,024  evaluated  ratio");
}

TEST_CASE("cli eval: contradictions are refused before any work") {
  const test::TempDir folder;
  const auto refusal = [&](const std::vector<std::string>& more) {
    const test::CliResult result = eval(folder, more);
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(refusal({"--policy", "amax,amax"}) ==
        "fp8kv: eval: the candidate 'fp8_e4m3 amax' is asked for twice\n"
        "help: name every dtype and every policy once\n");
  CHECK(refusal({"--policy", "p99.9,amax,p099.90"}) ==
        "fp8kv: eval: the candidate 'fp8_e4m3 p99.9' is asked for twice\n"
        "help: name every dtype and every policy once\n");
  CHECK(refusal({"--policy", "amax*1", "--policy", "amax"}) ==
        "fp8kv: eval: the candidate 'fp8_e4m3 amax' is asked for twice\n"
        "help: name every dtype and every policy once\n");
  CHECK(refusal({"--policy", "amax", "--kv-cache-dtype", "fp8_e5m2"}) ==
        "fp8kv: eval: no cache of --kv-cache-dtype takes such scales\n"
        "help: add fp8_e4m3, or leave out --scales, --policy and --calibrate-on\n");
  CHECK(
      refusal({"--baseline", "fp8"}) ==
      "fp8kv: eval: --baseline fp8: is not a 16-bit cache, expected float32, float16 or bfloat16\n"
      "help: name FP8 caches with --kv-cache-dtype\n");
  CHECK(refusal({"--unit-scales", "--calibrate-on", "x.txt"}) ==
        "fp8kv: eval: --calibrate-on is text for the scales of --policy, and there are scales "
        "already\nhelp: leave out --scales and --unit-scales\n");
  CHECK(refusal({"--fail-if", "kld"}) ==
        "fp8kv: eval: --fail-if: 'kld': has none of <, <=, > and >=\n"
        "help: write METRIC OP NUMBER[%], as in \"kld > 0.05\", or \"default\"\n");
}

// The text without machine-dependent parts: a number with sign and per cent becomes #, and blanks
// between columns become one blank.
std::string shape_of(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool begins = i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n';
    const size_t end = text.find_first_not_of("+-0123456789.,e%", i);
    const std::string word = text.substr(i, end - i);
    if (begins && word.find_first_of("0123456789") != word.npos) {
      out += word.ends_with(',') ? "#," : "#";
      i += word.size();
    } else if (text[i] == ' ' && (out.ends_with(' ') || out.ends_with('\n'))) {
      ++i;
    } else {
      out += text[i++];
    }
  }
  return out;
}

TEST_CASE("cli eval: the whole text, numbers aside") {
  const test::TempDir folder;
  const test::CliResult result =
      eval(folder, {"--policy", "amax*2", "--greedy-tokens", "0", "--table"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  std::string attention, layers, certificate;
  for (int i = 0; i < 6; ++i) {
    attention += "# #\n";
    layers += "# K # # # # #\n# V # # # # #\n";
    if (i > 1) certificate += "# K # # # # % # # # % # is safe\nV # # # # % # # # %\n";
  }
  const std::string shape = shape_of(result.out);
  CHECK(
      shape.starts_with("cache perplexity delta KLD KLD # top-1 greedy text B/token\n"
                        "float16 (baseline) # ± # - - - - - #\n"
                        "fp8_e4m3 amax*2 # ± # # ± # # ± # # # - #\n"
                        "\nlayers "));
  const std::string commands =
      cat("fp8kv calibrate ", kDemo, " --data ", kText,
          " --policy 'amax*2' -o scales.json\nfp8kv inject ", kDemo,
          " --scales scales.json -o demo-fp8\nvllm serve demo-fp8 --kv-cache-dtype fp8\n");
  const size_t tables = shape.find("\nRelative error");
  CHECK(shape.substr(0, tables).ends_with(commands));
  const size_t evidence = shape.find("\nevidence ");
  CHECK(shape.substr(tables, evidence + 1 - tables) ==
        "\nRelative error of the attention output, on the baseline's Q, K and V\n"
        "layer fp8_e4m3 amax*2\n" +
            attention + "\nfp8_e4m3 amax*2: what the cache does to K and V\n" +
            "layer error saturated subnormal zero NaN if unclamped\n" + layers +
            "\nfp8_e4m3 amax*2: are its scales safe for the evaluated text?\n"
            "layer amax saturation underflow flushed at #: saturation underflow flushed verdict\n"
            "# K # # # # % # # # % needs its scale: K saturates at #\n"
            "V # # # # % # # # %\n"
            "# K # # # # % # # # % needs its scale: K saturates at #, V underflows at #\n"
            "V # # # # % # # # %\n" +
            certificate +
            "Octaves between amax and the largest code, and between the median and full "
            "precision;\n"
            "flushed: share of values that become zero. First with the scale in force, then with "
            "#\n"
            "\nverdict layers # and # need their scales; # is safe in the other #\n"
            "scales hold every value that was seen\n"
            "on FNUZ the same (scales doubled)\n"
            "FP8 Q Q underflows at # in layers # and #; # is safe in the other # ('inject "
            "--q-scales' "
            "writes Q's scales)\n");
  CHECK(shape.find("; when the text last doubled, amax grew ", evidence) != shape.npos);
}

TEST_CASE("cli eval: --write-scales writes the file that calibrate makes of the same text") {
  const test::TempDir folder;
  const test::CliResult made = eval(
      folder, {"--policy", "amax,unit", "--greedy-tokens", "0", "--write-scales", "written.json"});
  CHECK(made.exit_code == 0);
  CHECK(made.out.find(" --scales written.json -o demo-fp8\n") != std::string::npos);
  CHECK(made.out.find("fp8kv calibrate") == std::string::npos);
  const test::CliResult calibrated =
      test::run_cli({"calibrate", kDemo, "--data", kText, "--samples", cat(kWindows), "--seq-len",
                     cat(kTokens), "-o", "made.json"},
                    folder.path());
  REQUIRE(calibrated.exit_code == 0);
  CHECK(test::read_file(folder / "written.json") == test::read_file(folder / "made.json"));
  const test::CliResult none = eval(folder, {"--unit-scales", "--write-scales", "none.json"});
  CHECK(none.exit_code == 2);
  CHECK(none.err.find("eval: --write-scales: no scales are made here\n") != std::string::npos);
}

TEST_CASE("cli eval: baselines and formats by their names, each once") {
  const test::TempDir folder;
  const auto names = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--json", "--greedy-tokens", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json json = Json::parse(eval_little(folder, arguments).out, "stdout");
    std::string list = json.at("baseline").at("name").as_string();
    for (size_t i = 0; i < json.at("candidates").size(); ++i) {
      list += ", " + json.at("candidates")[i].at("name").as_string();
    }
    return list;
  };
  CHECK(names({"--policy", "amax,amax*2,p99.99,mse,head"}) ==
        "float16, fp8_e4m3 amax, fp8_e4m3 amax*2, fp8_e4m3 p99.99, fp8_e4m3 mse, fp8_e4m3 head");
  CHECK(names({"--baseline", "bfloat16", "--kv-cache-dtype", "auto,fp8,fp8_e4m3fnuz,fp8_e5m2",
               "--policy", "head"}) ==
        "bfloat16, float16, fp8_e4m3 head, fp8_e4m3fnuz head, fp8_e5m2");
  CHECK(names({"--baseline", "float32", "--unit-scales"}) == "float32, fp8_e4m3 unit");
  CHECK(names({}) == "float16, fp8_e4m3 amax");
}

TEST_CASE("cli eval: a scale file's name is printed as words") {
  const test::TempDir folder;
  REQUIRE(test::run_cli({"calibrate", kDemo, "--data", kText, "--samples", "2", "--seq-len", "64",
                         "-o", "s\x1b[31m\xff.json", "-q"},
                        folder.path())
              .exit_code == 0);
  const test::CliResult result =
      eval_little(folder, {"--scales", "s\x1b[31m\xff.json", "--greedy-tokens", "0"});
  CHECK(result.exit_code == 0);
  CHECK(line(result.out, 2).starts_with("fp8_e4m3 s\\x1b[31m\\xff.json"));
  CHECK(result.out.find('\x1b') == std::string::npos);
}

TEST_CASE("cli eval: the same JSON from 1, 2, 3 and 4 threads") {
  const test::TempDir folder;
  std::vector<std::string> texts;
  for (const char* threads : {"1", "2", "3", "4"}) {
    std::string text = eval_windows(folder, kWindows, test::kSanitized ? 64 : 256,
                                    {"--policy", "amax,p99", "--kv-cache-dtype", "fp8,fp8_e5m2",
                                     "--greedy-tokens", "8", "--json", "--threads", threads})
                           .out;
    const size_t device = text.find("\"device\"");
    texts.push_back(text.erase(device, text.find('\n', device) - device));
  }
  CHECK(texts[0].size() > 10000);
  for (const std::string& each : texts) CHECK(each == texts[0]);
}

// The model has room for 1,024 tokens. The text has two windows of 700 and one of 40.
TEST_CASE("cli eval: losses by depth, in text, JSON and page") {
  const test::TempDir folder;
  test::TinyConfig config = test::tiny_config();
  config.max_seq_len = 1024;
  test::write_tiny_checkpoint(folder / "model", config);
  std::string lines;
  for (const int length : {700, 700, 40}) {
    std::string ids;
    for (int i = 0; i < length; ++i) ids += cat(i == 0 ? "" : ", ", (i * i + 7 * i + length) % 64);
    lines += cat("{\"input_ids\": [", ids, "]}\n");
  }
  folder.write("ids.jsonl", lines);
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "eval",         "model",    "--data", "ids.jsonl", "--seq-len", "1024", "--kv-cache-dtype",
        "fp8,fp8_e5m2", "--policy", "amax",   "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run_cli(arguments, folder.path());
  };
  const Json depths = Json::parse(run({"--json"}).out, "stdout").at("candidates")[0].at("depths");
  REQUIRE(depths.size() == 2);
  // The depth of a prediction is the number of tokens before it: 1 to 511, then 512 to 699.
  CHECK(depths[0].at("first_depth").as_int() == 0);
  CHECK(depths[0].at("end_depth").as_int() == 512);
  CHECK(depths[0].at("tokens").as_int() == 2 * 511 + 39);
  CHECK(depths[1].at("end_depth").as_int() == 2048);
  CHECK(depths[1].at("tokens").as_int() == 2 * (699 - 511));
  const std::string out = run({"--report", "page.html", "--table"}).out;
  const size_t at = out.find("\nBy depth: tokens in the cache\n");
  REQUIRE(at != out.npos);
  CHECK(shape_of(out.substr(at, out.find("\n\n", at) - at)) ==
        "\nBy depth: tokens in the cache\n"
        "depth cache tokens perplexity delta KLD KLD # top-1\n"
        "# fp8_e4m3 amax # # # ± # # ± # # #\n"
        "# fp8_e5m2 # # # ± # # ± # # #\n"
        "# fp8_e4m3 amax # # # ± # # ± # # #\n"
        "# fp8_e5m2 # # # ± # # ± # # #");
  const std::string page = test::read_file(folder / "page.html");
  CHECK(page.find("id=\"depth-perplexity\"") != page.npos);
  CHECK(page.find(">512–2,048</text>") != page.npos);
}

// Three caches with 2,048 rows of 131,072 logits would each take 1 GiB.
TEST_CASE("cli eval: memory for logits is bounded, whatever vocabulary and windows") {
  if (test::kSanitized) {
    test::skip("a sanitizer's own memory would be counted");
    return;
  }
  const test::TempDir folder;
  test::TinyConfig config = test::tiny_config();
  config.max_seq_len = 2048;
  config.vocab_size = 131072;
  test::write_tiny_checkpoint(folder / "model", config);
  std::string ids = "3";
  for (int i = 1; i < 2048; ++i) ids += cat(",", i * 61 % 131072);
  folder.write("ids.jsonl", cat("{\"input_ids\": [", ids, "]}\n"));
  const test::CliResult result =
      test::run_cli({"eval", "model", "--data", "ids.jsonl", "--kv-cache-dtype", "fp8,fp8_e5m2",
                     "--policy", "amax", "--greedy-tokens", "0", "-q"},
                    folder.path());
  CHECK(result.exit_code == 0);
  CHECK(result.peak_bytes < int64_t{1} << 30);
  CHECK(result.peak_bytes > int64_t{1} << 20);
}

TEST_CASE("cli eval: --calibrate-split takes one split of the folder of --calibrate-on") {
  const test::TempDir temp;
  const std::string demo = (test::source_dir() / "datasets/demo").string();
  for (const char* name : {"set/train.jsonl", "set/test.jsonl"}) {
    std::string lines;
    for (int i = 0; i < 3; ++i) lines += "{\"text\": \"London is the capital of England.\"}\n";
    temp.write(name, lines);
  }
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "eval",     demo,   "--data",          "set", "--split", "test",
        "--policy", "amax", "--greedy-tokens", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run_cli(arguments, temp.path());
  };
  const test::CliResult done = run({"--calibrate-on", "set", "--calibrate-split", "train"});
  CAPTURE(done.err);
  CHECK(done.exit_code == 0);
  const size_t evaluated = done.err.find("'set/test.jsonl': JSON lines");
  CHECK(evaluated != done.err.npos);
  CHECK(done.err.find("'set/train.jsonl': JSON lines", evaluated) != done.err.npos);
  CHECK(run({"--calibrate-on", "set"}).exit_code != 0);
  CHECK(run({"--calibrate-on", "set"}).err.find("'test' and 'train'") != std::string::npos);
  CHECK(run({"--calibrate-split", "train"}).exit_code == 2);
}

}  // namespace
}  // namespace fp8kv
