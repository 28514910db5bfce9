#include "base/log.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "base/duration.h"
#include "base/interrupt.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/wrapped_text.h"

namespace fp8kv {
namespace {

constexpr const char* kErase = "\r\033[K";  // erases the current line

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

void Log::warn(const std::string& line) {
  if (verbosity_ != Verbosity::quiet) say("warning: " + line);
}

void Log::note(const std::string& line) {
  if (verbosity_ != Verbosity::quiet) say(line);
}

void Log::detail(const std::string& line) {
  if (verbosity_ == Verbosity::verbose) say(line);
}

// Later progress is drawn below this line.
void Log::say(const std::string& line) {
  const std::string text = sentence_text(terminal_line(line), terminal_width(STDERR_FILENO), 2);
  print(cat(line_open_ ? kErase : "", text, "\n"));
  line_open_ = false;
}

void Log::draw(const std::string& stage) {
  print(cat(kErase, stages_, stage));
  line_open_ = true;
}

void Log::end_progress() {
  if (line_open_) print("\n");
  line_open_ = false;
  stages_.clear();
}

Progress::Progress(Log& log, std::string what, uint64_t total)
    : log_(log),
      what_(terminal_line(what)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      last_draw_(start_) {}

Progress::~Progress() {
  if (!drawn_ || !terminal_) return;
  draw();
  log_.stages_ += cat(what_, " ", duration(elapsed()), ", ");
}

void Progress::advance(uint64_t units) {
  check_interrupt();
  done_ += units;
  draw_if_due();
}

void Progress::reach(double share) {
  check_interrupt();
  done_ = std::max(done_, static_cast<uint64_t>(share * static_cast<double>(total_)));
  draw_if_due();
}

void Progress::draw_if_due() {
  const auto now = std::chrono::steady_clock::now();
  const auto quiet_start = std::chrono::seconds(2);
  const auto interval =
      terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10'000);
  if (now - start_ < quiet_start || (drawn_ && now - last_draw_ < interval)) return;
  last_draw_ = now;
  draw();
}

void Progress::draw() {
  if (log_.verbosity() == Verbosity::quiet) return;
  drawn_ = true;
  terminal_ ? log_.draw(line()) : print(line() + "\n");
}

double Progress::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::string Progress::line() const {
  const double share = total_ == 0 ? 1.0 : static_cast<double>(done_) / static_cast<double>(total_);
  std::string line = cat(what_, " ", fixed(share * 100, 0), " %");
  if (terminal_) {
    constexpr int kWidth = 24;
    const int filled = static_cast<int>(share * kWidth);
    line += " [" + std::string(static_cast<size_t>(filled), '#') +
            std::string(static_cast<size_t>(kWidth - filled), ' ') + "]";
  }
  line += " " + duration(elapsed());
  if (share > 0 && share < 1) line += cat(", ", duration(elapsed() / share * (1 - share)), " left");
  return line;
}

}  // namespace fp8kv
