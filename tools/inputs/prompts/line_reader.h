// Lines of a file descriptor as they arrive.
#pragma once

#include <optional>
#include <string>

namespace fp8kv {

class LineReader {
 public:
  // Longer than a prompt of ten million tokens.
  static constexpr size_t kLongestLine = size_t{64} << 20;

  explicit LineReader(int descriptor, size_t longest_line = kLongestLine)
      : descriptor_(descriptor), longest_line_(longest_line) {}

  // The next line without its newline; the last line may have none. With `wait`, nullopt means the
  // end. Without it, nullopt also means that no whole line has arrived.
  // Throws a resource Error if reading fails. Throws an input Error for a line of more than
  // `longest_line` bytes, and keeps no more of it. Throws like check_interrupt.
  std::optional<std::string> next(bool wait);

 private:
  bool read_more(bool wait);

  std::string take_line(size_t end);
  [[noreturn]] void fail_long() const;

  int descriptor_;
  size_t longest_line_;
  size_t lines_ = 0;  // lines returned so far
  std::string buffer_;
  size_t begin_ = 0;    // start of the text not yet returned
  size_t scanned_ = 0;  // no newline before this position
  bool ended_ = false;
};

}  // namespace fp8kv
