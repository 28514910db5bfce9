#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "show/colour.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/program/terminal.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

std::string without_escapes(std::string text) {
  for (size_t at; (at = text.find('\x1b')) != text.npos;) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  return text;
}

TEST_CASE("colour: words of verdicts and bars have it, and nothing else changes") {
  CHECK(coloured("layer 3  needs its scale: K saturates at 1.0\n") ==
        "layer 3  \x1b[33mneeds its scale\x1b[0m: K saturates at 1.0\n");
  CHECK(coloured("1.0 is safe") == "\x1b[32m1.0 is safe\x1b[0m");
  CHECK(coloured("keep in 16 bit") == "\x1b[31mkeep in 16 bit\x1b[0m");
  CHECK(coloured("not known\n") == "\x1b[35mnot known\x1b[0m\n");
  // One escape for a whole bar, and another one for the limit inside it.
  CHECK(coloured("  0  5 ███│█▌\n") ==
        "  0  5 \x1b[36m███\x1b[0m\x1b[33m│\x1b[0m\x1b[36m█▌\x1b[0m\n");
  CHECK(coloured("plain ┊ text\n") == "plain ┊ text\n");
  CHECK(coloured("") == "");
}

TEST_CASE("colour: in a terminal alone, and not against NO_COLOR") {
  const test::TempDir temp;
  const std::string demo = (test::source_dir() / "datasets/demo").string();
  const std::string text = (test::source_dir() / "datasets/calibration.txt").string();
  REQUIRE(test::run_cli({"calibrate", demo, "--data", text, "--samples", "20", "--seq-len", "64",
                         "-o", "s.json", "-q"},
                        temp.path())
              .exit_code == 0);
  const std::vector<std::string> inspect = {"inspect", "--certificate", "--plot", "s.json"};
  const auto in_terminal = [&](const std::vector<std::string>& environment) {
    test::Terminal terminal(400);
    const test::CliResult result = test::run_cli(
        inspect,
        test::CliSetup{.folder = temp.path(), .out = terminal.path, .environment = environment});
    CHECK(result.exit_code == 0);
    return terminal.text();
  };
  const std::string piped =
      test::run_cli(inspect, test::CliSetup{.folder = temp.path(),
                                            .environment = {"TERM=xterm", "NO_COLOR="}})
          .out;
  CHECK(piped.find('\x1b') == piped.npos);
  const std::string shown = in_terminal({"TERM=xterm", "NO_COLOR="});
  CHECK(shown.find("\x1b[33mneeds its scale\x1b[0m: K saturates") != shown.npos);
  CHECK(shown.find("\x1b[36m█") != shown.npos);
  CHECK(without_escapes(shown) == piped);
  CHECK(in_terminal({"TERM=xterm", "NO_COLOR=1"}) == piped);
  CHECK(in_terminal({"TERM=dumb", "NO_COLOR="}) == piped);
  CHECK(in_terminal({"TERM=", "NO_COLOR="}) == piped);
}

}  // namespace
}  // namespace fp8kv
