#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "base/shell.h"
#include "base/terminal_text.h"
#include "support/program/run_cli.h"
#include "support/program/shell_words.h"
#include "support/temp_dir.h"

namespace fp8kv {

TEST_CASE("shell_word: bash reads every name back, whatever bytes it has") {
  const test::TempDir temp;
  std::vector<std::string> names = {
      "a",       "a b", "a; touch X", "$(touch X)", "`touch X`", "a'b",    "a\\b\"", "",   "a\nb\n",
      "\x1b[2J", "-rf", "~",          "*",          "é ü!",      "\u202e", "\xff",   "#x", "!!"};
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    std::string name;
    for (int k = 0; k < 12; ++k) name += static_cast<char>(1 + rng.next() % 255);
    names.push_back(name);
  }
  std::string line = "words";
  for (const std::string& name : names) line += " " + shell_word(name);
  CHECK(shows_as_it_is(line));
  names.insert(names.begin(), "words");
  CHECK(test::shell_words(line, temp.path()) == names);
  CHECK_FALSE(std::filesystem::exists(temp / "X"));
}

TEST_CASE("shell_word: a shell that knows no escapes still sees one word, and runs nothing") {
  const test::TempDir temp;
  const std::string line = "set -- " + shell_word("\x1b; touch X; '$(touch X)") + "; echo $#";
  const test::CliResult result =
      test::run_cli({"-c", line}, {.folder = temp.path(), .program = "/bin/sh"});
  CHECK(result.out == "1\n");
  CHECK_FALSE(std::filesystem::exists(temp / "X"));
}

TEST_CASE("shell_path: a path is never a flag") {
  CHECK(shell_path("-rf") == "./-rf");
  CHECK(shell_path("-a b") == "'./-a b'");
  CHECK(shell_path("models/x") == "models/x");
}

}  // namespace fp8kv
