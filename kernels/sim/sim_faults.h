// Faults of a simulated device, so that tests see their consequences. The variable
// FP8KV_SIM_FAULT asks for them; only the simulator reads it:
//   full:N      the device is full from its N-th allocation on
//   lost:OP:N   the device is lost at the N-th launch of OP; that launch and all later calls fail
//   fault:OP:N  the N-th launch of OP faults while it runs: later waits report the fault, and later
//               work does not run
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace fp8kv::sim {

// Every member may be called from several threads.
class Faults {
 public:
  // Throws a device error if the variable has any other value.
  Faults();

  // Counts an allocation, and returns whether there is room for it.
  bool allocate();
  void launch(const std::string& op);
  // Notes a launch of op `op` that is recorded. `op` lives as long as the program.
  void record(const char* op);
  std::vector<const char*> take_recorded();

  // The errors of a call that gives the device work, and of a call that waits for it; "": none.
  std::string of_giving() const;
  std::string of_waiting() const;
  // Whether the device still runs the work that it is given.
  bool runs() const { return of_waiting().empty(); }

 private:
  enum class State { sound, faulted, lost };

  std::string kind_;
  std::string op_;
  uint64_t left_ = 0;  // launches or allocations until it happens
  std::vector<const char*> recorded_;
  mutable std::mutex mutex_;
  State state_ = State::sound;
};

}  // namespace fp8kv::sim
