// Results on standard output.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

// Thrown when the reader of standard output has gone away, which ends the program quietly: `fp8kv
// inspect ... | head` is no failure.
struct BrokenPipe {};

// Writes and flushes. Throws BrokenPipe, or a resource Error for other failures.
void print(std::string_view text);

// Refuses before the work what writing would refuse after it: a file that is there already.
void check_output(const std::filesystem::path& path, bool force);

// Text in columns two blanks apart: the first column left-aligned, the others right-aligned, unless
// `left` says otherwise.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<bool> left = {true});
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

// A number to `digits` significant digits, as short as possible: "23.89", "0.00338".
std::string significant(double value, int digits = 4);

}  // namespace fp8kv
