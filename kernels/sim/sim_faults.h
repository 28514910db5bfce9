// Faults that a simulated device is told to have, so that tests see what becomes of them. It is
// told by FP8KV_SIM_FAULT, which nothing but the simulator reads:
//   full:N      the device is full from its N-th allocation on
//   lost:OP:N   the device is lost at the N-th launch of OP; that and all that follows fails
//   fault:OP:N  the N-th launch of OP faults while it runs: whoever waits from then on hears of it,
//               and what the device is given after it does not run
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace fp8kv::sim {

// Every member may be called from several threads.
class Faults {
 public:
  // Throws a device error when the variable has something else in it.
  Faults();

  // An allocation; whether there is room for it.
  bool allocate();
  void launch(const std::string& op);
  // A launch that is recorded, by its op's name, which lives as long as the program.
  void record(const char* op);
  std::vector<const char*> take_recorded();

  // What a call hears that gives the device work, and one that waits for it; "": nothing.
  std::string of_giving() const;
  std::string of_waiting() const;
  // Whether what is given still runs.
  bool runs() const { return of_waiting().empty(); }

 private:
  enum class State { sound, faulted, lost };

  std::string kind_;
  std::string op_;
  uint64_t left_ = 0;  // until it happens
  std::vector<const char*> recorded_;
  mutable std::mutex mutex_;
  State state_ = State::sound;
};

}  // namespace fp8kv::sim
