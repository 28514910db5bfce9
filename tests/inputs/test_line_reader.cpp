#include <array>
#include <string>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "inputs/prompts/line_reader.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

// A pipe that holds `bytes`. Its writing end is closed unless `open`.
struct Pipe {
  explicit Pipe(const std::string& bytes, bool open = false) {
    REQUIRE(pipe(ends.data()) == 0);
    REQUIRE(write(ends[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    if (!open) close_writer();
  }
  ~Pipe() {
    close(ends[0]);
    close_writer();
  }
  void close_writer() {
    if (ends[1] >= 0) close(ends[1]);
    ends[1] = -1;
  }
  std::array<int, 2> ends{};
};

std::vector<std::string> lines_of(const std::string& bytes, size_t longest) {
  const Pipe pipe(bytes);
  LineReader reader(pipe.ends[0], longest);
  std::vector<std::string> lines;
  while (auto line = reader.next(true)) lines.push_back(*line);
  return lines;
}

}  // namespace

TEST_CASE("line reader: lines as they are, the last one with or without its end") {
  CHECK(lines_of("a\n\nbc\n", 9) == std::vector<std::string>{"a", "", "bc"});
  CHECK(lines_of("a\nbc", 9) == std::vector<std::string>{"a", "bc"});
  CHECK(lines_of("", 9).empty());
  CHECK(lines_of("123\n456", 3) == std::vector<std::string>{"123", "456"});
}

TEST_CASE("line reader: a line that is too long is an error, ended or not, with its number") {
  const auto refusal = [](const std::string& bytes) {
    return test::error_of([&] { lines_of(bytes, 1000); });
  };
  const std::string message =
      "standard input: line 2 is longer than 1000 B, the most that a line may have";
  CHECK(refusal("a\n" + std::string(1001, 'x')) == message);
  CHECK(refusal("a\n" + std::string(1001, 'x') + "\n") == message);
  CHECK_NOTHROW(lines_of("a\n" + std::string(1000, 'x') + "\nb", 1000));
}

TEST_CASE("line reader: the error of a line that is too long does not wait for its end") {
  const Pipe pipe(std::string(1001, 'x'), true);
  LineReader reader(pipe.ends[0], 1000);
  CHECK_THROWS_AS(reader.next(false), Error);
}

}  // namespace fp8kv
