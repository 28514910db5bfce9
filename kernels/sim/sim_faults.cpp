#include "kernels/sim/sim_faults.h"

#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace fp8kv::sim {
namespace {

constexpr char kVariable[] = "FP8KV_SIM_FAULT";
constexpr char kFull[] = "full";
constexpr char kLost[] = "lost";
constexpr char kFault[] = "fault";

// 0 unless the text is a number from 1 on.
uint64_t count_from(const std::string& text) {
  char* end = nullptr;
  const uint64_t count = std::strtoull(text.c_str(), &end, 10);
  return *end == '\0' ? count : 0;
}

}  // namespace

Faults::Faults() {
  const char* text = std::getenv(kVariable);
  if (!text) return;
  const std::string all = text;
  const size_t first = all.find(':'), last = all.rfind(':');
  if (last != all.npos) {
    kind_ = all.substr(0, first);
    if (last > first) op_ = all.substr(first + 1, last - first - 1);
    left_ = count_from(all.substr(last + 1));
  }
  const bool of_op = kind_ == kLost || kind_ == kFault;
  if (left_ > 0 && (of_op ? !op_.empty() : kind_ == kFull && op_.empty())) return;
  throw Error(cat(kVariable, " is ", quote(all), ", which is no fault"),
              "use full:N, lost:OP:N or fault:OP:N", ErrorKind::device);
}

bool Faults::allocate() {
  const std::lock_guard lock(mutex_);
  if (kind_ != kFull) return true;
  if (left_ > 0) --left_;
  return left_ > 0;
}

void Faults::launch(const std::string& op) {
  const std::lock_guard lock(mutex_);
  if (left_ == 0 || op != op_ || --left_ > 0) return;
  state_ = kind_ == kLost ? State::lost : State::faulted;
}

void Faults::record(const char* op) {
  const std::lock_guard lock(mutex_);
  recorded_.push_back(op);
}

std::vector<const char*> Faults::take_recorded() {
  const std::lock_guard lock(mutex_);
  return std::exchange(recorded_, {});
}

std::string Faults::of_giving() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::lost ? "the device is lost (simulated)" : "";
}

std::string Faults::of_waiting() const {
  const std::lock_guard lock(mutex_);
  if (state_ == State::lost) return "the device is lost (simulated)";
  return state_ == State::faulted ? "an illegal memory access (simulated)" : "";
}

}  // namespace fp8kv::sim
