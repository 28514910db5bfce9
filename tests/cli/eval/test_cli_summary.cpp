// `--summary`: the outcome of eval and verify as Markdown. Tasks are in test_cli_eval_texts.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "docs/markdown.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"
#include "support/workplaces/verify_place.h"

namespace fp8kv {
namespace {

// The line of `text` that starts with `start`, without it.
std::string rest_of_line(const std::string& text, const std::string& start) {
  for (const std::string& line : test::lines_of(text)) {
    if (line.starts_with(start)) return line.substr(start.size());
  }
  return "";
}

bool has_line(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

}  // namespace

TEST_CASE("cli summary: eval writes verdict, figures, checks and commands, also if it fails") {
  const test::TempDir folder;
  const std::string demo = (test::source_dir() / "datasets/demo").string();
  const test::CliResult result = test::run_cli(
      {"eval", demo, "--data", (test::source_dir() / "datasets/calibration.txt").string(),
       "--samples", "2", "--seq-len", "32", "-q", "--policy", "amax", "--fail-if", "kld > 100",
       "--fail-if", "tokens < 1000", "--summary", "eval.md"},
      folder.path());
  CHECK(result.exit_code == 1);
  const std::vector<std::string> lines = test::lines_of(test::read_file(folder / "eval.md"));
  REQUIRE(lines.size() > 6);
  CHECK(lines[0] == "### fp8kv eval " + demo);
  CHECK(rest_of_line(result.out, "verdict   ") ==
        "Too little text for a verdict: tokens is 62 (tokens < 100).");
  CHECK(lines[2] == "**Too little text for a verdict: tokens is 62 (tokens \\< 100).**");
  CHECK(lines[4] ==
        "| cache | perplexity | delta | KLD | KLD 99.9% | top-1 | greedy text | B/token |");
  CHECK(lines[5] == "|---|--:|--:|--:|--:|--:|--:|--:|");
  CHECK(lines[6].starts_with("| float16 (baseline) | "));
  CHECK(lines[7].starts_with("| fp8_e4m3 amax | "));
  CHECK(has_line(lines, "| check | cache | outcome | found |"));
  CHECK(has_line(lines, "| tokens \\< 1000 | fp8_e4m3 amax | failed | tokens is 62 |"));
  CHECK(has_line(lines, "```sh"));
  CHECK(has_line(lines, "vllm serve demo-fp8 --kv-cache-dtype fp8"));
}

TEST_CASE("cli summary: verify writes the table, the ways out and the commands") {
  const test::VerifyPlace place;
  place.inject("out", {"--for", "vllm"});
  const std::vector<std::string> arguments = {"verify",    "out",        "--runtime", "vllm@0.9.2",
                                              "--runtime", "sglang@all", "--summary", "v.md"};
  CHECK(place.run(arguments).exit_code == 1);
  CHECK(test::read_file(place.temp / "v.md") == R"(### fp8kv verify out

**Not every scale arrives: SGLang up to 0.5.18: ignored**

| runtime | version | scales | how |
|---|---|---|---|
| vLLM | 0.9.2 | rounded | with --kv-cache-dtype fp8: one scale for K and one for V, doubled for FNUZ GPUs since 0.8 |
|  |  |  | rounded by 0.04 % (layer 1) |
|  |  | note | --kv-cache-dtype fp8_e5m2 fails with such a model |
| SGLang | up to 0.5.18 | ignored | kv_cache_scheme means nothing to it: an FP8 cache runs with 1 |
| SGLang | 0.5.19 and newer | exact | with --kv-cache-dtype fp8_e4m3: one scale for K and one for V, doubled for FNUZ GPUs |

- SGLang up to 0.5.18: fp8kv inject out --scales out -o out-kv --replace --for vllm-rocm
- SGLang up to 0.5.18: use SGLang 0.5.19 and newer, which loads these scales as they are

```sh
vllm serve out --kv-cache-dtype fp8
python3 -m sglang.launch_server --model-path out --kv-cache-dtype fp8_e4m3
```

)");
  CHECK(place.run(arguments).exit_code == 3);  // the file exists already
}

}  // namespace fp8kv
