// Lines of a descriptor as they arrive.
#pragma once

#include <optional>
#include <string>

namespace fp8kv {

class LineReader {
 public:
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}

  // The next line without its newline; the last one may lack it. With `wait`, nullopt means the
  // end; without, also that there is no whole line yet. Throws a resource Error when reading fails,
  // an input Error for a line of more than a gibibyte, and as check_interrupt does.
  std::optional<std::string> next(bool wait);

 private:
  bool read_more(bool wait);

  int descriptor_;
  std::string buffer_;
  size_t begin_ = 0;    // of what has not been given yet
  size_t scanned_ = 0;  // no newline before
  bool ended_ = false;
};

}  // namespace fp8kv
