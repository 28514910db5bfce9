// Writes notes, warnings and progress to stderr. Results go to stdout by other ways.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fp8kv {

enum class Verbosity { quiet, normal, verbose };

// main makes one Log and passes it to the code that has messages.
class Log {
 public:
  explicit Log(Verbosity verbosity = Verbosity::normal) : verbosity_(verbosity) {}
  ~Log() { end_progress(); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void warn(const std::string& line);    // "warning: ..."; shown unless quiet
  void note(const std::string& line);    // shown unless quiet
  void detail(const std::string& line);  // shown when verbose
  Verbosity verbosity() const { return verbosity_; }

  // Ends the line in which a terminal shows progress, so that results can follow it.
  void end_progress();

 private:
  friend class Progress;
  void say(const std::string& line);
  void draw(const std::string& stage);

  Verbosity verbosity_;
  std::string stages_;      // finished stages with their times: "reading 12 s, "
  bool line_open_ = false;  // the cursor of the terminal is in a line of progress
};

// The progress of `total` units of work. It is silent for two seconds. Then a terminal shows a bar
// with an ETA, redrawn in place, and other outputs get a line every ten seconds. In a terminal all
// stages of a command share one line, which begins with the times of finished stages.
class Progress {
 public:
  Progress(Log& log, std::string what, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Counts finished units. An interrupt takes effect here (see interrupt.h).
  void advance(uint64_t units = 1);
  // For work whose finished share is known: from 0 to 1, rising.
  void reach(double share);

 private:
  void draw_if_due();
  void draw();
  std::string line() const;
  double elapsed() const;  // seconds

  Log& log_;
  std::string what_;
  uint64_t total_;
  uint64_t done_ = 0;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_draw_;
};

}  // namespace fp8kv
