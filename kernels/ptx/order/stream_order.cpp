#include "kernels/ptx/order/stream_order.h"

#include <algorithm>

namespace fp8kv::ptx {

uint64_t Clock::of(int stream) const {
  const auto at = static_cast<size_t>(stream);
  return at < done_.size() ? done_[at] : 0;
}

void Clock::add_work(int stream) {
  const auto at = static_cast<size_t>(stream);
  if (at >= done_.size()) done_.resize(at + 1);
  ++done_[at];
}

void Clock::join(const Clock& other) {
  if (done_.size() < other.done_.size()) done_.resize(other.done_.size());
  for (size_t i = 0; i < other.done_.size(); ++i) done_[i] = std::max(done_[i], other.done_[i]);
}

int StreamOrder::add_stream() {
  const std::lock_guard lock(mutex_);
  if (!removed_.empty()) {
    const int stream = removed_.back();
    removed_.pop_back();
    return stream;
  }
  streams_.emplace_back();
  return static_cast<int>(streams_.size()) - 1;
}

void StreamOrder::remove_stream(int stream) {
  const std::lock_guard lock(mutex_);
  removed_.push_back(stream);
}

WorkTime StreamOrder::begin_work(int stream) {
  const std::lock_guard lock(mutex_);
  Clock& clock = streams_[static_cast<size_t>(stream)];
  clock.join(host_);
  clock.add_work(stream);
  all_.add_work(stream);
  return {stream, clock};
}

Clock StreamOrder::now(int stream) const {
  const std::lock_guard lock(mutex_);
  return streams_[static_cast<size_t>(stream)];
}

void StreamOrder::wait(int stream, const Clock& clock) {
  const std::lock_guard lock(mutex_);
  streams_[static_cast<size_t>(stream)].join(clock);
}

void StreamOrder::wait_here(const Clock& clock) {
  const std::lock_guard lock(mutex_);
  host_.join(clock);
}

void StreamOrder::wait_for_all() {
  const std::lock_guard lock(mutex_);
  host_.join(all_);
}

Clock StreamOrder::host() const {
  const std::lock_guard lock(mutex_);
  return host_;
}

}  // namespace fp8kv::ptx
