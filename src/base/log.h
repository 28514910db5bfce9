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

  void warn(const std::string& line);    // "warning: ..."; shown unless quiet
  void note(const std::string& line);    // shown unless quiet
  void detail(const std::string& line);  // shown when verbose
  Verbosity verbosity() const { return verbosity_; }

 private:
  Verbosity verbosity_;
};

// Progress of `total` units of work. Silent for the first two seconds; then a bar that redraws in
// place with an ETA when stderr is a terminal, else a line every ten seconds.
class Progress {
 public:
  Progress(Log& log, std::string what, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Also a point where an interrupt takes effect (see interrupt.h).
  void advance(uint64_t units = 1);

 private:
  void draw(bool last);

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
