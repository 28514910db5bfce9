#include "data/text_stream.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"

namespace fp8kv {
namespace {

constexpr size_t kLongestLine = size_t(1) << 30;

// The number of bytes at the end of `text` that begin a character and lack its rest.
size_t open_character(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const auto byte = static_cast<unsigned char>(text[text.size() - n]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return n < length ? n : 0;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(More more, Where where) : more_(std::move(more)), where_(std::move(where)) {
  while (held_.size() < kByteOrderMark.size() && read_named()) continue;
  if (held_.starts_with(kByteOrderMark)) begin_ = kByteOrderMark.size();
  rest_ = std::string_view(held_).substr(begin_, checked_ - begin_);
}

std::string_view TextStream::peek(size_t length) {
  while (more_ && rest_.size() < length && read_named()) continue;
  return rest_;
}

void TextStream::skip(size_t length) {
  FP8KV_ASSERT(length <= rest_.size());
  rest_.remove_prefix(length);
  begin_ += length;
  position_ += length;
}

std::optional<std::string_view> TextStream::line() {
  if (at_end()) return std::nullopt;
  size_t searched = 0;
  for (;;) {
    const size_t end = rest_.find('\n', searched);
    if (end != rest_.npos) {
      const std::string_view found = rest_.substr(0, end);
      skip(end + 1);
      return found;
    }
    searched = rest_.size();
    if (searched > kLongestLine) {
      fail(where_ ? where_() + ": " : "", "a line of more than ", human_bytes(kLongestLine));
    }
    if (peek(searched + 1).size() > searched) continue;
    const std::string_view found = rest_;
    skip(found.size());
    return found;
  }
}

bool TextStream::read_named() {
  if (!where_) return read_more();
  try {
    return read_more();
  } catch (Error& error) {
    if (error.kind() != ErrorKind::interrupted) error.add_context(where_());
    throw;
  }
}

// Drops text that was already read once it is more than the rest.
bool TextStream::read_more() {
  check_interrupt();
  if (bad_) throw *bad_;
  if (begin_ > held_.size() / 2) {
    lines_ += static_cast<size_t>(
        std::count(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(begin_), '\n'));
    held_.erase(0, begin_);
    checked_ -= begin_;
    begin_ = 0;
  }
  const bool read = more_(held_);
  check_utf8(!read);
  rest_ = std::string_view(held_).substr(begin_, checked_ - begin_);
  if (!read && !bad_) more_ = nullptr;
  return read || bad_;
}

void TextStream::check_utf8(bool at_end) {
  const std::string_view fresh = std::string_view(held_).substr(checked_);
  const size_t open = at_end ? 0 : open_character(fresh);
  size_t bad = 0;
  if (!is_utf8(fresh.substr(0, fresh.size() - open), &bad)) {
    const auto end = held_.begin() + static_cast<ptrdiff_t>(checked_ + bad);
    bad_ = Error(cat("not valid UTF-8 at byte ", position_ + checked_ + bad - begin_, ", line ",
                     lines_ + static_cast<size_t>(std::count(held_.begin(), end, '\n')) + 1,
                     " of what is unpacked"),
                 "convert it, for instance with: iconv -f LATIN1 -t UTF-8 FILE");
    checked_ += bad;
    return;
  }
  checked_ = held_.size() - open;
}

}  // namespace fp8kv
