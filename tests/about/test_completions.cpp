// Completions for bash, zsh and fish. The scripts contain every flag, and installed shells complete
// with them.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "docs/markdown.h"
#include "support/program/program_help.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Words = std::vector<std::string>;

std::string script_for(const std::string& shell) {
  const test::CliResult result = test::run_cli({"completions", shell});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  return result.out;
}

// The path of a shell, like "/usr/bin/zsh". If it is not installed, prints that and returns "".
std::string find_shell(const std::string& name) {
  for (const char* folder : {"/bin/", "/usr/bin/", "/usr/local/bin/"}) {
    if (std::filesystem::exists(folder + name)) return folder + name;
  }
  test::skip(name + " is not there");
  return "";
}

// The words that bash offers for the last of `words`, after it has read our script.
std::set<std::string> offered_by_bash(const Words& words, const std::filesystem::path& folder) {
  const test::TempDir temp;
  const std::string file = temp.write("fp8kv.bash", script_for("bash")).string();
  std::string line;
  for (const std::string& word : words) line += " '" + word + "'";
  const std::string code = cat("source ", file, " && complete -p fp8kv >/dev/null && COMP_WORDS=(",
                               line, ") COMP_CWORD=", words.size() - 1,
                               " && _fp8kv fp8kv && printf '%s\\n' \"${COMPREPLY[@]}\"");
  const test::CliResult result = test::run_cli({"--norc", "--noprofile", "-uc", code},
                                               {.folder = folder, .program = "/bin/bash"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  const Words lines = test::lines_of(result.out);
  std::set<std::string> offered(lines.begin(), lines.end());
  offered.erase("");
  return offered;
}

std::set<std::string> offered_by_fish(const std::string& fish, const std::string& line,
                                      const std::filesystem::path& folder) {
  const test::TempDir temp;
  const std::string file = temp.write("fp8kv.fish", script_for("fish")).string();
  const test::CliResult result = test::run_cli(
      {"--no-config", "-c", cat("source ", file, "; complete -C '", line, "'")},
      {.folder = folder, .program = fish, .environment = {"HOME=" + temp.path().string()}});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  std::set<std::string> offered;
  for (const std::string& each : test::lines_of(result.out)) {
    offered.insert(each.substr(0, each.find('\t')));
  }
  return offered;
}

}  // namespace

TEST_CASE("completions: every flag of every command is in the script of each shell") {
  const std::string bash = script_for("bash"), zsh = script_for("zsh"), fish = script_for("fish");
  size_t checked = 0;
  for (const auto& [command, help] : test::commands()) {
    CAPTURE(command);
    const size_t in_zsh = zsh.find(cat("        ", command, ")\n"));
    REQUIRE(in_zsh != zsh.npos);
    const std::string zsh_part = zsh.substr(in_zsh, zsh.find(";;", in_zsh) - in_zsh);
    const std::set<std::string> in_bash = offered_by_bash({"fp8kv", command, "-"}, ".");
    for (const std::string& flag : test::flags_of(help)) {
      CAPTURE(flag);
      CHECK(in_bash.contains(flag));
      const bool is_long = flag.starts_with("--");
      CHECK(zsh_part.find(flag) != zsh_part.npos);
      const std::string option = is_long ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
      bool in_fish = false;
      for (const std::string& line : test::lines_of(fish)) {
        in_fish |= line.find(cat("'__fp8kv_is ", command, "'")) != line.npos &&
                   (line + " ").find(option + " ") != line.npos;
      }
      CHECK(in_fish);
      ++checked;
    }
  }
  CHECK(checked > 150);
}

TEST_CASE("completions: bash offers commands, flags, words, files, and nothing for a number") {
  const test::TempDir temp;
  temp.write("text one.txt", "");
  temp.write("model/config.json", "");
  const auto offered = [&](const Words& words) { return offered_by_bash(words, temp.path()); };
  const std::set<std::string> files = {"text one.txt", "model"};
  CHECK(offered({"fp8kv", "cal"}) == std::set<std::string>{"calibrate"});
  CHECK(offered({"fp8kv", ""}).contains("completions"));
  CHECK(offered({"fp8kv", "--v"}) == std::set<std::string>{"--version"});
  CHECK(offered({"fp8kv", "run", "--max"}) ==
        std::set<std::string>{"--max-new-tokens", "--max-batch"});
  CHECK(offered({"fp8kv", "run", "--order", ""}) == std::set<std::string>{"input", "finished"});
  CHECK(offered({"fp8kv", "run", "--order", "="}) == std::set<std::string>{"input", "finished"});
  CHECK(offered({"fp8kv", "run", "--order", "=", "f"}) == std::set<std::string>{"finished"});
  CHECK(offered({"fp8kv", "run", "--kv-cache-dtype", "fp8_e5"}) ==
        std::set<std::string>{"fp8_e5m2"});
  CHECK(offered({"fp8kv", "eval", "m", "--policy", "amax,un"}) ==
        std::set<std::string>{"amax,unit"});
  CHECK(offered({"fp8kv", "calibrate", ""}) == files);
  CHECK(offered({"fp8kv", "calibrate", "m", "-d", "te"}) == std::set<std::string>{"text one.txt"});
  CHECK(offered({"fp8kv", "run", "m", "--seed", ""}).empty());
  CHECK(offered({"fp8kv", "calibrate", "m", "--samples", ""}) == std::set<std::string>{"auto"});
  CHECK(offered({"fp8kv", "help", "inj"}) == std::set<std::string>{"inject"});
  CHECK(offered({"fp8kv", "completions", ""}) == std::set<std::string>{"bash", "zsh", "fish"});
}

TEST_CASE("completions: fish offers commands, flags, words, files, and nothing for a number") {
  const std::string fish = find_shell("fish");
  if (fish.empty()) return;
  const test::TempDir temp;
  temp.write("text.txt", "");
  const auto offered = [&](const std::string& line) {
    return offered_by_fish(fish, line, temp.path());
  };
  CHECK(offered("fp8kv cal") == std::set<std::string>{"calibrate"});
  CHECK(offered("fp8kv run --max") == std::set<std::string>{"--max-new-tokens", "--max-batch"});
  CHECK(offered("fp8kv run --order ") == std::set<std::string>{"input", "finished"});
  CHECK(offered("fp8kv run m --seed ").empty());
  CHECK(offered("fp8kv calibrate m -d te") == std::set<std::string>{"text.txt"});
  CHECK(offered("fp8kv help inj") == std::set<std::string>{"inject"});
  CHECK(offered("fp8kv eval m --policy amax,un").contains("amax,unit"));
}

// zsh completes only in a terminal, so this checks the script's code, and completes in a
// pseudo-terminal.
TEST_CASE("completions: zsh offers commands, flags, words and files") {
  const std::string zsh = find_shell("zsh");
  if (zsh.empty()) return;
  const test::TempDir temp;
  temp.write("functions/_fp8kv", script_for("zsh"));
  temp.write("here/text.txt", "");
  const std::string code = R"(
zmodload zsh/zpty
zpty shell zsh -f -i
read_until() { local out; zpty -r -m shell out "*$1*" && REPLY=$out; }
zpty -w shell "PS1= ; fpath=($PWD/../functions \$fpath); autoload -Uz compinit; compinit -u -D; unsetopt zle_bracketed_paste; bindkey '^I' complete-word; print re''ady"
read_until ready
for line in 'fp8kv cal' 'fp8kv run --order fin' 'fp8kv calibrate -d tex' 'fp8kv inject --scale-ro'; do
  zpty -w -n shell "$line"$'\t'$'\C-a''print -r -- "<'$'\C-e''>"'$'\n'
  read_until '<fp8kv *>'$'\r'
  print -r -- ${${REPLY##*<}%%>*}
done
zpty -d shell
)";
  const test::CliResult checked =
      test::run_cli({"-n", (temp / "functions/_fp8kv").string()}, {.program = zsh});
  CHECK(checked.exit_code == 0);
  CHECK(checked.err == "");
  const test::CliResult result =
      test::run_cli({"-fc", code}, {.folder = temp / "here",
                                    .program = zsh,
                                    .environment = {"TERM=dumb", "HOME=" + temp.path().string()}});
  CAPTURE(result.err);
  CHECK(result.out ==
        "fp8kv calibrate\nfp8kv run --order finished\nfp8kv calibrate -d text.txt\n"
        "fp8kv inject --scale-rounding\n");
}

TEST_CASE("completions: the shell must be one of three, and is named") {
  const test::CliResult other = test::run_cli({"completions", "ksh"});
  CHECK(other.exit_code == 2);
  CHECK(other.err ==
        "fp8kv: completions: 'ksh' is not one of: bash, zsh, fish (did you mean 'zsh'?)\n"
        "help: see 'fp8kv completions --help'\n");
  const test::CliResult none = test::run_cli({"completions"});
  CHECK(none.exit_code == 2);
  CHECK(none.err ==
        "fp8kv: completions: bash|zsh|fish is missing\nhelp: see 'fp8kv completions --help'\n");
}

}  // namespace fp8kv
