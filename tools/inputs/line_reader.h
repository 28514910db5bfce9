// Lines of a descriptor as they arrive.
#pragma once

#include <optional>
#include <string>

namespace fp8kv {

class LineReader {
 public:
  // A prompt of ten million tokens is shorter than such a line.
  static constexpr size_t kLongestLine = size_t{64} << 20;

  explicit LineReader(int descriptor, size_t longest_line = kLongestLine)
      : descriptor_(descriptor), longest_line_(longest_line) {}

  // The next line without its newline; the last one may lack it. With `wait`, nullopt means the
  // end; without, also that there is no whole line yet. Throws a resource Error when reading fails,
  // an input Error for a line of more than `longest_line` bytes, of which no more than that is
  // kept, and as check_interrupt does.
  std::optional<std::string> next(bool wait);

 private:
  bool read_more(bool wait);

  std::string take_line(size_t end);
  [[noreturn]] void fail_long() const;

  int descriptor_;
  size_t longest_line_;
  size_t lines_ = 0;  // that were given
  std::string buffer_;
  size_t begin_ = 0;    // of what has not been given yet
  size_t scanned_ = 0;  // no newline before
  bool ended_ = false;
};

}  // namespace fp8kv
