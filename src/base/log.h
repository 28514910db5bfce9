// What the program says on stderr: notes, warnings and progress. Results go to stdout, not here.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fp8kv {

enum class Verbosity { quiet, normal, verbose };

// One talker, made in main and passed down to what has something to say.
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
  std::string stages_;      // that are over, and what each took: "reading 12 s, "
  bool line_open_ = false;  // the terminal's cursor stands behind progress
};

// Progress of `total` units of work. Silent for the first two seconds; then a bar that redraws in
// place with an ETA when stderr is a terminal, else a line every ten seconds. In a terminal all
// stages of a command share a line, which begins with what those before took.
class Progress {
 public:
  Progress(Log& log, std::string what, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Also a point where an interrupt takes effect (see interrupt.h).
  void advance(uint64_t units = 1);
  // For work of which the share that is done is known: from 0 to 1, rising.
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
