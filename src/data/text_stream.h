// A text that is read once from its begin to its end: one that lies in memory, or one that comes
// part by part, of which only what was asked for is held.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace fp8kv {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class TextStream {
 public:
  // Appends some more bytes; false at the end. A byte-order mark at the front is left out.
  using More = std::function<bool(std::string& out)>;
  // Where it is, for messages; asked when an error is thrown. Empty: whoever reads says so.
  using Where = std::function<std::string()>;
  explicit TextStream(More more, Where where = {});
  // REQUIRES `whole` to be UTF-8, and to outlive this.
  explicit TextStream(std::string_view whole) : rest_(whole) {}
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  // What comes next: at least `length` bytes unless the text ends before; all of it where it lies
  // in memory. Valid until the next call. Throws for what is not UTF-8, with the offset.
  std::string_view peek(size_t length);
  // REQUIRES that many bytes to have been seen.
  void skip(size_t length);
  // The next line without its newline; nullopt at the end. Valid until the next call. Throws for a
  // line of more than a GiB.
  std::optional<std::string_view> line();

  bool at_end() { return peek(1).empty(); }
  // How many bytes were skipped.
  size_t position() const { return position_; }

 private:
  bool read_more();
  bool read_named();
  void check_utf8(bool at_end);

  More more_;  // empty: all is there
  Where where_;
  std::string held_;    // what was read, when it comes part by part
  size_t checked_ = 0;  // bytes of it that are whole characters
  size_t begin_ = 0;    // of what comes next, in it
  std::string_view rest_;
  size_t position_ = 0;
  size_t lines_ = 0;          // newlines before held_
  std::optional<Error> bad_;  // behind what is whole: thrown when that is used up
};

}  // namespace fp8kv
