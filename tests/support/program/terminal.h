// A pseudo-terminal that a test reads.
#pragma once

#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/ioctl.h>
#include <termios.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>

namespace fp8kv::test {

// A terminal with `columns` columns. A thread reads the output as it comes.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : main_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    REQUIRE((main_ >= 0 && grantpt(main_) == 0 && unlockpt(main_) == 0));
    path = ptsname(main_);
    other_ = open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(other_ >= 0);
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(ioctl(other_, TIOCSWINSZ, &size) == 0);
    termios plain{};
    REQUIRE(tcgetattr(other_, &plain) == 0);
    cfmakeraw(&plain);  // keeps line ends as one character
    REQUIRE(tcsetattr(other_, TCSANOW, &plain) == 0);
    reader_ = std::thread([this] {
      char buffer[4096];
      for (ssize_t got; (got = read(main_, buffer, sizeof buffer)) > 0;) {
        text_.append(buffer, static_cast<size_t>(got));
      }
    });
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (reader_.joinable()) text();
    close(main_);
  }

  // All output. Call once, after all writers have finished.
  std::string text() {
    close(other_);  // ends the reading
    reader_.join();
    return text_;
  }

  std::string path;

 private:
  int main_;
  int other_ = -1;
  std::string text_;
  std::thread reader_;
};

}  // namespace fp8kv::test
