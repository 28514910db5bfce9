#include "inputs/prompts/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/interrupt.h"

namespace fp8kv {
namespace {

constexpr size_t kBlock = 64 * 1024;
// The longest wait in one poll. An interrupt between the check and the poll is noticed after it.
constexpr int kWaitMs = 200;

}  // namespace

std::optional<std::string> LineReader::next(bool wait) {
  while (true) {
    const size_t newline = buffer_.find('\n', std::max(begin_, scanned_));
    if (newline != buffer_.npos || (ended_ && begin_ < buffer_.size())) {
      return take_line(std::min(newline, buffer_.size()));
    }
    if (ended_) return std::nullopt;
    buffer_.erase(0, begin_);
    begin_ = 0;
    scanned_ = buffer_.size();
    if (scanned_ > longest_line_) fail_long();
    if (!read_more(wait)) return std::nullopt;
  }
}

std::string LineReader::take_line(size_t end) {
  if (end - begin_ > longest_line_) fail_long();
  std::string line = buffer_.substr(begin_, end - begin_);
  begin_ = std::min(end + 1, buffer_.size());
  scanned_ = begin_;
  ++lines_;
  return line;
}

void LineReader::fail_long() const {
  throw Error(cat("standard input: line ", lines_ + 1, " is longer than ",
                  human_bytes(longest_line_), ", the most that a line may have"),
              "write one JSON record a line; is a newline missing?");
}

// Reads one block. Returns false if no input has arrived, which cannot happen with `wait`.
bool LineReader::read_more(bool wait) {
  while (true) {
    pollfd asked{descriptor_, POLLIN, 0};
    const int ready = poll(&asked, 1, wait ? kWaitMs : 0);
    const int error = errno;
    check_interrupt();
    if (ready < 0 && error != EINTR) fail_system("standard input", "read", error);
    if (ready > 0) break;
    if (!wait) return false;
  }
  const size_t before = buffer_.size();
  buffer_.resize(before + kBlock);
  const ssize_t got = read(descriptor_, buffer_.data() + before, kBlock);
  const int error = errno;
  buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0 && error != EINTR && error != EAGAIN) fail_system("standard input", "read", error);
  if (got == 0) ended_ = true;
  return true;
}

}  // namespace fp8kv
