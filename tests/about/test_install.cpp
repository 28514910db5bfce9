// cmake --install: the installed files, and that the tree works after it is moved.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/places.h"
#include "support/program/program_help.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {

namespace fs = std::filesystem;

TEST_CASE("install: program, completions, manual pages, docs and licence, in a tree that moves") {
  const test::TempDir temp;
  const test::CliResult installed =
      test::run_cli({"--install", test::built_program().parent_path().parent_path().string(),
                     "--prefix", (temp / "first").string()},
                    {.program = FP8KV_CMAKE});
  CAPTURE(installed.err);
  REQUIRE(installed.exit_code == 0);
  fs::rename(temp / "first", temp / "moved");
  const fs::path share = temp / "moved" / "share";
  std::vector<fs::path> expected = {share / "bash-completion/completions/fp8kv",
                                    share / "zsh/site-functions/_fp8kv",
                                    share / "zsh/vendor-completions/_fp8kv",
                                    share / "fish/vendor_completions.d/fp8kv.fish",
                                    share / "man/man1/fp8kv.1",
                                    share / "doc/fp8kv/LICENSE",
                                    share / "doc/fp8kv/copyright",
                                    share / "doc/fp8kv/README.md",
                                    share / "doc/fp8kv/docs/commands.md"};
  for (const auto& [command, help] : test::commands()) {
    expected.push_back(share / "man/man1" / cat("fp8kv-", command, ".1"));
  }
  for (const fs::path& file : expected) {
    CAPTURE(file);
    CHECK(fs::is_regular_file(file));
    CHECK((!fs::exists(file) || fs::file_size(file) > 100));
  }
  const fs::path program = temp / "moved" / "bin" / "fp8kv";
  const auto run = [&](const std::vector<std::string>& arguments) {
    return test::run_cli(arguments, {.program = program}).out;
  };
  CHECK(run({"--version"}) == test::run_cli({"--version"}).out);
  // The built program wrote the pages. If the simulator is beside it, the page has one more device.
  CHECK(test::run_cli({"completions", "fish"}).out ==
        test::read_file(share / "fish/vendor_completions.d/fp8kv.fish"));
  CHECK(test::run_cli({"man", "run"}).out == test::read_file(share / "man/man1/fp8kv-run.1"));
  CHECK(run({"man", "diff"}) == test::read_file(share / "man/man1/fp8kv-diff.1"));
  // No installed text knows where it was built or installed. Compiled files do, because internal
  // error messages name source files.
  for (const auto& entry : fs::recursive_directory_iterator(temp / "moved")) {
    const bool compiled = entry.path() == program || entry.path().extension() == ".so";
    if (!entry.is_regular_file() || compiled) continue;
    CAPTURE(entry.path());
    const std::string text = test::read_file(entry.path());
    CHECK(text.find(temp.path().string()) == text.npos);
    CHECK(text.find(test::source_dir().string()) == text.npos);
  }
}

// An older release's module stands in for a real one. The error about its version shows that it was
// found.
TEST_CASE("install: a GPU's module is found in lib/fp8kv beside bin") {
  const test::TempDir temp;
  fs::create_directories(temp / "bin");
  fs::create_directories(temp / "lib/fp8kv");
  fs::copy_file(test::built_program(), temp / "bin/fp8kv");
  fs::copy_file(FP8KV_OLD_MODULE, temp / "lib/fp8kv/fp8kv_cuda.so");
  const test::CliResult result =
      test::run_cli({"doctor", "--json"}, {.program = temp / "bin/fp8kv"});
  CHECK(result.exit_code == 0);
  CHECK(result.out.find((temp / "lib/fp8kv/fp8kv_cuda.so").string()) != std::string::npos);
}

}  // namespace fp8kv
