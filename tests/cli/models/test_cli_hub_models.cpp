// Models by their names on the Hugging Face Hub.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// The tiny model in the layout of huggingface_hub's cache: links to blobs.
struct Shell {
  Shell() {
    const fs::path entry = temp / "cache/models--org--tiny", snapshot = entry / "snapshots/c0ffee";
    fs::create_directories(snapshot);
    test::write_tiny_checkpoint(entry / "blobs", test::tiny_config());
    for (const auto& file : fs::directory_iterator(entry / "blobs")) {
      const fs::path name = file.path().filename();
      fs::create_symlink("../../blobs" / name, snapshot / name);
    }
    temp.write("cache/models--org--tiny/refs/main", "c0ffee");
    temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 9, 33]}\n");
  }
  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, {.folder = temp.path(),
                                     .environment = {"HF_HUB_CACHE=" + (temp / "cache").string()}});
  }
  test::TempDir temp;
};

}  // namespace

TEST_CASE("cli hub models: every command that takes a model takes its name") {
  const Shell shell;
  const std::vector<std::vector<std::string>> commands = {
      {"calibrate", "org/tiny", "--data", "ids.jsonl", "-o", "s.json"},
      {"inject", "org/tiny", "-s", "s.json", "-o", "out"},
      {"run", "org/tiny@c0ffee", "--prompts", "ids.jsonl", "-n", "1", "--json"},
      {"eval", "org/tiny", "--data", "ids.jsonl", "--json", "--greedy-tokens", "0"},
      {"plan", "org/tiny"},
      {"inspect", "org/tiny"},
      {"diff", "out", "s.json"},
      {"extract", "out", "-o", "t.json"}};
  for (const auto& arguments : commands) {
    CAPTURE(arguments[0]);
    const test::CliResult result = shell.run(arguments);
    CHECK_MESSAGE(result.exit_code == 0, result.err);
  }
  CHECK(shell.run({"extract", "org/tiny", "-o", "u.json"}).err.find("snapshots/c0ffee'") !=
        std::string::npos);
}

TEST_CASE("cli hub models: the reference that says which snapshot a name means is kept") {
  const Shell shell;
  const std::string reference = "cache/models--org--tiny/refs/main";
  for (const char* model :
       {"org/tiny", "cache/models--org--tiny", "cache/models--org--tiny/snapshots/c0ffee/"}) {
    CAPTURE(std::string(model));
    const test::CliResult result =
        shell.run({"calibrate", model, "--data", "ids.jsonl", "-o", reference, "--force"});
    CHECK(result.exit_code == 2);
    CHECK(result.err.find("--out and MODEL are the same file: '" + reference + "' and '") !=
          std::string::npos);
    CHECK(test::read_file(shell.temp / reference) == "c0ffee");
  }
}

TEST_CASE("cli hub models: what is not there is an error with the way out") {
  const Shell shell;
  const test::CliResult result = shell.run({"inspect", "org/other"});
  CHECK(result.exit_code == 3);
  CHECK(result.out.empty());
  CHECK(
      result.err ==
      "fp8kv: inspect: 'org/other': is no path here, and no model of this name is in the hub's "
      "cache (" +
          (shell.temp / "cache").string() +
          ")\nhelp: check the path; or fetch the model: hf download org/other --include \"*.json\" "
          "--include \"*.safetensors\" --include \"*.jinja\" --include \"tokenizer.model\" "
          "--include "
          "\"merges.txt\"\n");
}

}  // namespace fp8kv
