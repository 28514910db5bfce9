// Progress in a terminal: one line for all stages of a command.
#include <chrono>
#include <regex>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "base/log.h"
#include "support/program/capture_stderr.h"
#include "support/program/terminal.h"

namespace fp8kv {
namespace {

constexpr std::chrono::milliseconds kBehindQuietStart{2050};

// The log of `work` if standard error is a terminal.
template <typename Work>
std::string in_terminal(Work&& work) {
  test::Terminal terminal(80);
  const int saved = ::dup(STDERR_FILENO);
  const int there = ::open(terminal.path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  REQUIRE(::dup2(there, STDERR_FILENO) >= 0);
  work();
  std::fflush(stderr);
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(there);
  return terminal.text();
}

TEST_CASE("log: notes keep to the width of a terminal") {
  const std::string shown = in_terminal([] {
    Log log;
    log.note(
        "note: model.safetensors has another name in this folder, since transformers would not "
        "read its index");
  });
  CHECK(shown ==
        "note: model.safetensors has another name in this folder, since transformers\n"
        "  would not read its index\n");
}

TEST_CASE("progress: stages share a line of the terminal, and notes go above it") {
  const std::string shown = in_terminal([] {
    Log log;
    {
      Progress reading(log, "reading", 1000);
      std::this_thread::sleep_for(kBehindQuietStart);
      reading.reach(0.5);
    }
    log.note("read it");
    {
      Progress layers(log, "calibrating", 4);
      std::this_thread::sleep_for(kBehindQuietStart);
      layers.advance();
      log.note("a layer is odd");
      layers.advance(3);
    }
    log.end_progress();
    log.note("wrote it");
  });
  // Seconds depend on the machine, so they are replaced.
  CHECK(std::regex_replace(shown, std::regex("\\b[0-9]+ s\\b"), "N s") ==
        "\r\033[Kreading 50 % [############            ] N s, N s left"
        "\r\033[Kreading 50 % [############            ] N s, N s left"
        "\r\033[Kread it\n"
        "\r\033[Kreading N s, calibrating 25 % [######                  ] N s, N s left"
        "\r\033[Ka layer is odd\n"
        "\r\033[Kreading N s, calibrating 100 % [########################] N s"
        "\nwrote it\n");
}

TEST_CASE("progress: work of less than two seconds shows nothing, and a log ends its line") {
  CHECK(in_terminal([] {
          Log log;
          Progress reading(log, "reading", 2);
          reading.advance(2);
        }) == "");
  CHECK(in_terminal([] {
          Log quiet(Verbosity::quiet);
          Progress reading(quiet, "reading", 2);
          std::this_thread::sleep_for(kBehindQuietStart);
          reading.advance();
        }) == "");
}

}  // namespace
}  // namespace fp8kv
