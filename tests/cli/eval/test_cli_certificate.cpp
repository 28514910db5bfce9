#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// Layer 0 needs its scale, V of layer 1 is too wide, layer 2 is tame. K has 2 heads.
constexpr const char* kScaleFile = R"({
  "model_type": "llama",
  "kv_cache": {"dtype": "float8_e4m3fn",
               "scaling_factor": {"0": {"0": 2, "1": 128, "2": 0.015625}}},
  "fp8kv": {
    "schema": "fp8kv.scales/1", "source": "fp8kv calibrate", "format": "float8_e4m3fn",
    "granularity": "tensor", "observation": "post_rope", "compute_dtype": "float16",
    "model": {"n_layers": 3, "n_kv_heads": 2},
    "counted": {"documents": 3, "windows": 4, "tokens": 2000, "data": []},
    "k_scale": [[2], [0.0078125], [0.015625]], "v_scale": [[0.0078125], [128], [0.0078125]],
    "amax": {"k": [[896, 3], [3.5, 1], [7, 6]], "v": [[3.5, 1], [57344, 1], [3.5, 1]],
             "q": [[1, 1], [1, 1], [1, 1]]},
    "octaves": {"k": [[0, 1, 90, 5, 0, 0, 0, 0, 0, 0, 5], [0, 0, 50, 50], [0, 0, 9, 1, 90]],
                "v": [[0, 0, 50, 50], [0, -8, 90, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0, 0, 0, 0, 5], [100, -11, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 97, 1]]}
  }
})";

constexpr const char* kSummary =
    "made      scales of 3 layers, one per tensor, from 2,000 tokens in 4 windows\n"
    "at 1.0    would not have done: 1 of 3 layers needs its scale and 1 of 3 layers should stay in "
    "16 bit\n"
    "next      fp8kv inject MODEL --scales s.json -o MODEL-fp8\n\n";

constexpr const char* kCertificate =
    R"(layer      amax  saturation  underflow  flushed  at 1.0: saturation  underflow  flushed  verdict
    0  K    896       +0.00       +6.0    0.0 %               -1.00       +7.0    0.0 %  needs its scale: K saturates at 1.0
       V    3.5       +0.00      +13.0    0.0 %               +7.00       +6.0    0.0 %
    1  K    3.5       +0.00      +13.0    0.0 %               +7.00       +6.0    0.0 %  keep in 16 bit: V has too wide a range
       V  57344       +0.00       -9.0   95.0 %               -7.00       -2.0    0.0 %
    2  K      7       +0.00      +14.0    0.0 %               +6.00       +8.0    0.0 %  1.0 is safe
       V    3.5       +0.00      +13.0    0.0 %               +7.00       +6.0    1.0 %
Octaves between amax and the largest code, and between the median and full precision;
flushed: share of values that become zero. First with the scale in force, then with 1.0.

verdict   layer 1 should stay in 16 bit; layer 0 needs its scale; 1.0 is safe in the other layer
scales    lose values that were seen in layer 1: calibrate again
on FNUZ   the same (scales doubled)
policy    amax
evidence  2,000 tokens in 4 windows of 3 documents; K after RoPE, computed in float16
for vLLM  --kv-cache-dtype-skip-layers 1
)";

TEST_CASE("cli certificate: the whole text for a scale file") {
  const test::TempDir folder;
  folder.write("s.json", kScaleFile);
  const test::CliResult result =
      test::run_cli({"inspect", "--certificate", "s.json"}, folder.path());
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(result.out == cat(kSummary, kCertificate));
  const std::string whole = test::run_cli({"inspect", "s.json"}, folder.path()).out;
  CHECK(whole.starts_with(cat(kSummary, "scale file        s.json\n")));
  CHECK(whole.ends_with(kCertificate));
}

TEST_CASE("cli certificate: JSON has both formats, shares and the flag") {
  const test::TempDir folder;
  folder.write("s.json", kScaleFile);
  const test::CliResult result =
      test::run_cli({"inspect", "--certificate", "--json", "s.json"}, folder.path());
  const Json certificate = Json::parse(result.out, "stdout").at("certificate");
  CHECK(certificate.at("evidence").at("tokens").as_int() == 2000);
  const Json formats = certificate.at("formats");
  REQUIRE(formats.size() == 2);
  CHECK(formats[0].at("format").as_string() == "float8_e4m3fn");
  CHECK(formats[1].at("format").as_string() == "float8_e4m3fnuz");
  CHECK(formats[0].at("vllm_flag").as_string() == "--kv-cache-dtype-skip-layers 1");
  CHECK(formats[0].at("needs_scale").brief() == "[0]");
  CHECK(formats[0].at("keep_16bit").brief() == "[1]");
  const Json k = formats[0].at("layers")[0].at("k");
  CHECK(k.at("at_1").at("saturation_margin").as_double() == -1);
  CHECK(k.at("in_force").at("flushed").at("most").as_double() == 0);
  CHECK(formats[1].at("layers")[0].at("k").at("at_1").at("underflow_margin").as_double() == 8);
}

TEST_CASE("cli certificate: ten tokens of text give no verdict, whoever is asked") {
  const test::TempDir folder;
  const std::filesystem::path datasets = test::source_dir() / "datasets";
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.push_back("-q");
    const test::CliResult result = test::run_cli(arguments, folder.path());
    CHECK(result.exit_code == 0);
    return result.out;
  };
  const std::vector<std::string> text = {(datasets / "demo").string(),
                                         "--data",
                                         (datasets / "calibration.txt").string(),
                                         "--samples",
                                         "1",
                                         "--seq-len",
                                         "10"};
  const auto with = [&](const char* command, std::vector<std::string> more) {
    more.insert(more.begin(), text.begin(), text.end());
    more.insert(more.begin(), command);
    return more;
  };
  const std::string verdict = "\nverdict   too little text: 10 tokens; 990 more are needed\n";
  const std::string calibrated = run(with("calibrate", {"-o", "s.json"}));
  CHECK(calibrated.starts_with(
      "made      scales of 6 layers, one per tensor, from 10 tokens in 1 window\n"
      "verdict   too little text: 10 tokens; 990 more are needed\n"
      "scales    hold every value that was seen\n"));
  CHECK(calibrated.ends_with("next      calibrate on more text, 990 tokens more at least\n"));
  const std::string inspected = run({"inspect", "s.json"});
  const std::string evaluated = run(with(
      "eval", {"--policy", "amax", "--greedy-tokens", "0", "--report", "page.html", "--table"}));
  for (const std::string* out : {&calibrated, &inspected, &evaluated}) {
    CHECK(out->find(verdict) != out->npos);
    CHECK(out->find("is safe") == out->npos);
  }
  const std::string page = test::read_file(folder / "page.html");
  CHECK(page.find("Too little text: 10 tokens; 990 more are needed.") != page.npos);
  CHECK(page.find("is safe") == page.npos);
  const std::string as_json = run({"inspect", "--certificate", "--json", "s.json"});
  CHECK(as_json.find("\"amax_growth\": null") != as_json.npos);
  const Json evidence = Json::parse(as_json, "stdout").at("certificate").at("evidence");
  CHECK(!evidence.at("enough_text").as_bool());
  CHECK(evidence.at("more_tokens").as_int() == 990);
}

TEST_CASE("cli certificate: scales that cannot be judged pass with a warning, or fail on demand") {
  const test::TempDir folder;
  const std::filesystem::path datasets = test::source_dir() / "datasets";
  const std::string demo = (datasets / "demo").string();
  const auto run = [&](std::vector<std::string> arguments, std::vector<std::string> more = {"-q"}) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run_cli(arguments, folder.path());
  };
  const auto calibrate = [&](const char* windows, const char* out) {
    return std::vector<std::string>{
        "calibrate", demo,    "--data",    (datasets / "calibration.txt").string(),
        "--samples", windows, "--seq-len", "100",
        "-o",        out};
  };
  const std::string missing = "'little.json': too little text: 100 tokens; 900 more are needed\n";
  const test::CliResult made = run(calibrate("1", "little.json"), {"--require-evidence", "-q"});
  CHECK(made.exit_code == 1);
  CHECK(made.err == "fp8kv: calibrate: " + missing + "help: calibrate on more text\n");
  CHECK(made.out.starts_with("made      scales of 6 layers"));
  CHECK(std::filesystem::exists(folder / "little.json"));
  CHECK(run(calibrate("10", "enough.json"), {"--require-evidence", "-q"}).exit_code == 0);

  const auto inject = [&](const char* scales, const char* out) {
    return std::vector<std::string>{"inject", demo, "--scales", scales, "-o", out};
  };
  const test::CliResult warned = run(inject("little.json", "a"), {});
  CHECK(warned.exit_code == 0);
  CHECK(warned.err.find("warning: " + missing) != std::string::npos);
  const std::string in_folder = "'a': too little text: 100 tokens; 900 more are needed\n";
  CHECK(run({"verify", "a"}, {}).err == "warning: " + in_folder);
  CHECK(run({"verify", "a"}, {"--require-evidence", "-q"}).err ==
        "fp8kv: verify: " + in_folder + "help: calibrate on more text\n");
  const test::CliResult refused = run(inject("little.json", "b"), {"--require-evidence", "-q"});
  CHECK(refused.exit_code == 1);
  CHECK(refused.err == "fp8kv: inject: " + missing + "help: calibrate on more text\n");
  CHECK_FALSE(std::filesystem::exists(folder / "b"));
  const test::CliResult passed = run(inject("enough.json", "c"), {"--require-evidence", "-q"});
  CHECK(passed.exit_code == 0);
  CHECK(passed.err.find("too little text") == std::string::npos);
  // Scale files of other tools have no record of their text.
  folder.write("foreign.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
      "scaling_factor": {"0": {"0": 1, "1": 1, "2": 1, "3": 1, "4": 1, "5": 1}}}})");
  CHECK(run(inject("foreign.json", "d"), {}).err.find("too little text") == std::string::npos);
  CHECK(run(inject("foreign.json", "e"), {"--require-evidence", "-q"})
            .err.starts_with("fp8kv: inject: 'foreign.json': too little text: it is not known how "
                             "much text was counted\n"));
}

TEST_CASE("cli: every command that reads scales warns of one that no model leads to") {
  const test::TempDir folder;
  const std::filesystem::path datasets = test::source_dir() / "datasets";
  const std::string demo = (datasets / "demo").string();
  const std::string text = (datasets / "calibration.txt").string();
  REQUIRE(test::run_cli({"calibrate", demo, "--data", text, "--samples", "2", "--seq-len", "16",
                         "--policy", "unit", "-o", "s.json", "-q"},
                        folder.path())
              .exit_code == 0);
  folder.write("plain.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
      "scaling_factor": {"0": {"0": 1, "1": 1, "2": 1, "3": 3.4e35, "4": 1, "5": 2e-38}}}})");
  const std::string warning =
      "'plain.json': implausible-scale: the scale of layer 3 K and V is 3.4e+35, expected 1.3e-10 "
      "to 9358";
  const auto says = [&](std::vector<std::string> arguments) {
    const test::CliResult result = test::run_cli(arguments, folder.path());
    CAPTURE(arguments[0]);
    CAPTURE(result.err);
    CHECK(result.exit_code <= 1);
    CHECK(result.err.find("warning: " + warning) != std::string::npos);
  };
  says({"extract", "plain.json"});
  says({"diff", "plain.json", "s.json"});
  says({"inject", demo, "--scales", "plain.json", "-o", "out"});
  says({"run", demo, "--scales", "plain.json", "--prompt", "London", "-n", "1"});
  says({"eval", demo, "--scales", "plain.json", "--data", text, "--samples", "1", "--seq-len", "16",
        "--greedy-tokens", "0"});
  // run reads the folder's scales in another way, and inspect reads the file in a third.
  const test::CliResult carried =
      test::run_cli({"run", "out", "--prompt", "London", "-n", "1"}, folder.path());
  CHECK(carried.err.find("implausible-scale: the scale of layer 3 K") != std::string::npos);
  CHECK(test::run_cli({"inspect", "plain.json"}, folder.path())
            .out.find("implausible-scale: the scale of layer 3 K and V is 3.4e+35") !=
        std::string::npos);
}

TEST_CASE("cli merge: a scale that no model leads to is warned of") {
  const test::TempDir folder;
  std::string file = kScaleFile;
  // Amax and scale of K in layer 0 become implausible, but still agree with each other.
  const auto change = [&](const std::string& from, const std::string& to) {
    const size_t at = file.find(from);
    REQUIRE(at != std::string::npos);
    file.replace(at, from.size(), to);
  };
  change("[896, 3]", "[4.48e10, 3]");
  change("[0, 1, 90, 5, ", "[0, 15, 90, 5, ");
  change("[[2], ", "[[1e8], ");
  change("\"0\": 2,", "\"0\": 1e8,");
  folder.write("s.json", file);
  const test::CliResult result = test::run_cli({"merge", "s.json", "-o", "m.json"}, folder.path());
  CHECK(result.err.find("warning: 's.json': implausible-scale: the scale of layer 0 K is 1e+08") !=
        std::string::npos);
}

TEST_CASE("cli certificate: scales without evidence are refused") {
  const test::TempDir folder;
  folder.write("v.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
                             "scaling_factor": {"0": {"0": 0.5}}}})");
  const test::CliResult result =
      test::run_cli({"inspect", "--certificate", "v.json"}, folder.path());
  CHECK(result.exit_code == 3);
  CHECK(result.out == "");
  CHECK(result.err ==
        "fp8kv: inspect: 'v.json': has scales, but not the magnitudes that they were made from, so "
        "there is nothing to certify them by\n"
        "help: a scale file of 'fp8kv calibrate' has them\n");
  CHECK(test::run_cli({"inspect", "v.json"}, folder.path()).exit_code == 0);
}

TEST_CASE("cli certificate: on the demo model exactly the layers that were moved need scales") {
  const test::TempDir folder;
  const std::filesystem::path datasets = test::source_dir() / "datasets";
  const test::CliResult result = test::run_cli(
      {"calibrate", (datasets / "demo").string(), "--data", (datasets / "calibration.txt").string(),
       "--samples", "40", "--seq-len", "128", "--json", "--quiet"},
      folder.path());
  REQUIRE(result.exit_code == 0);
  const Json formats = Json::parse(result.out, "stdout").at("certificate").at("formats");
  for (size_t i = 0; i < formats.size(); ++i) {
    CHECK(formats[i].at("verdict").as_string() ==
          "layers 0 and 1 need their scales; 1.0 is safe in the other 4");
    CHECK(formats[i].at("does_not_hold").size() == 0);
    const Json layers = formats[i].at("layers");
    CHECK(layers[0].at("k").at("reason").as_string() == "K saturates at 1.0");
    CHECK(layers[0].at("v").at("verdict").as_string() == "1.0 is safe");
    CHECK(layers[1].at("k").at("reason").as_string() == "K saturates at 1.0");
    CHECK(layers[1].at("v").at("reason").as_string() == "V underflows at 1.0");
  }
}

TEST_CASE(
    "cli certificate: --plot draws the ranges, alone, below the certificate or a calibration") {
  const test::TempDir folder;
  folder.write("s.json", kScaleFile);
  const auto run = [&](const std::vector<std::string>& arguments) {
    const test::CliResult result = test::run_cli(arguments, folder.path());
    CHECK(result.exit_code == 0);
    return result.out;
  };
  const std::string plot = run({"inspect", "--plot", "s.json"});
  CHECK(plot.starts_with("Largest |K| of each layer, from 2^-"));
  CHECK(plot.find("\n   1  3.5 ") != plot.npos);
  CHECK(run({"inspect", "--certificate", "--plot", "s.json"}) ==
        cat(kSummary, kCertificate, "\n", plot));
  const std::string demo = (test::source_dir() / "datasets/demo").string();
  const std::string text = (test::source_dir() / "datasets/calibration.txt").string();
  const std::vector<std::string> calibrate = {"calibrate", demo, "--data",    text,
                                              "--seq-len", "32", "--samples", "2",
                                              "-q",        "-o", "made.json", "--force"};
  std::vector<std::string> with_plot = calibrate;
  with_plot.emplace_back("--plot");
  const std::string shown = run(calibrate);
  CHECK(run(with_plot) == shown + "\n" + run({"inspect", "--plot", "made.json"}));
}

TEST_CASE("cli certificate: calibrate and eval say what weights were decoded from") {
  const test::TempDir folder;
  folder.write("data.jsonl", R"({"input_ids": [3, 4, 5, 6, 7, 8, 9, 10]})");
  const std::string model = (test::source_dir() / "tests/golden/quantised/nvfp4-ct").string();
  const auto run = [&](std::vector<std::string> arguments) {
    for (const char* more : {"--data", "data.jsonl", "--device", "cpu", "-q"}) {
      arguments.emplace_back(more);
    }
    const test::CliResult result = test::run_cli(arguments, folder.path());
    CHECK(result.exit_code == 0);
    return result.out;
  };
  const std::string line =
      "\nweights   decoded from nvfp4, a scale for each 16 columns of a row; activations in "
      "float32, which runtimes may quantise too\n";
  CHECK(run({"calibrate", model, "-o", "s.json"}).find(line) != std::string::npos);
  CHECK(run({"eval", model, "--scales", "s.json"}).find(line) != std::string::npos);
  const Json made = Json::parse(run({"calibrate", model, "-o", "t.json", "--json"}), "made");
  CHECK(made.at("certificate").at("evidence").at("quantised_weights").as_string() ==
        "nvfp4, a scale for each 16 columns of a row");
}

}  // namespace
}  // namespace fp8kv
