// A text that is read once from its beginning to its end. It is in memory, or arrives in parts, of
// which only the requested text is held.
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
  // Appends more bytes; returns false at the end. A byte-order mark at the beginning is left out.
  using More = std::function<bool(std::string& out)>;
  // The place for messages, asked only when an error is thrown. Empty: the reader of the stream
  // adds it.
  using Where = std::function<std::string()>;
  explicit TextStream(More more, Where where = {});
  // REQUIRES `whole` to be UTF-8, and to outlive this object.
  explicit TextStream(std::string_view whole) : rest_(whole) {}
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  // The next text: at least `length` bytes unless the text ends first, or everything if it is in
  // memory. Valid until the next call. Throws for invalid UTF-8, with the offset.
  std::string_view peek(size_t length);
  // REQUIRES that peek() returned that many bytes.
  void skip(size_t length);
  // The next line without its newline; nullopt at the end. Valid until the next call. Throws for a
  // line of more than a GiB.
  std::optional<std::string_view> line();

  bool at_end() { return peek(1).empty(); }
  // The number of bytes that were skipped.
  size_t position() const { return position_; }

 private:
  bool read_more();
  bool read_named();
  void check_utf8(bool at_end);

  More more_;  // empty: the whole text is in rest_
  Where where_;
  std::string held_;    // text read so far, if it arrives in parts
  size_t checked_ = 0;  // checked bytes of held_: complete, valid characters
  size_t begin_ = 0;    // start of the unread text in held_
  std::string_view rest_;
  size_t position_ = 0;
  size_t lines_ = 0;          // newlines before held_
  std::optional<Error> bad_;  // thrown once the valid text before it is used up
};

}  // namespace fp8kv
