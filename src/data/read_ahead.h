// Passes items in order from a producing thread to a consuming one, so that files are read and
// unpacked while their text becomes tokens. Knows nothing of files or records.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/interrupt.h"

namespace fp8kv {

template <typename T>
class ReadAhead {
 public:
  // Adds an item, after waiting for room. Returns false if no more are wanted; the producer must
  // then return.
  using Put = std::function<bool(T item, size_t bytes)>;

  // Runs `make` in its own thread. At most `most_bytes` wait (or one larger item), besides those
  // that were already handed over but not returned yet. Throws std::system_error if no thread can
  // be started.
  ReadAhead(size_t most_bytes, std::function<void(const Put&)> make)
      : most_bytes_(most_bytes), thread_([this, make = std::move(make)] { run(make); }) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  // Waits until the producer has returned.
  ~ReadAhead() {
    {
      const std::lock_guard lock(mutex_);
      unwanted_ = true;
    }
    room_.notify_one();
    thread_.join();
  }

  // Returns nullopt at the end. After the producer's last item, throws what the producer threw.
  // Throws if an interrupt came.
  std::optional<T> next() {
    if (taken_.empty()) take();
    if (taken_.empty()) {
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
      return std::nullopt;
    }
    std::optional<T> item(std::move(taken_.front()));
    taken_.pop_front();
    return item;
  }

 private:
  static constexpr std::chrono::milliseconds kHeardWithin{20};

  void run(const std::function<void(const Put&)>& make) {
    std::exception_ptr error;
    try {
      make([this](T item, size_t bytes) { return put(std::move(item), bytes); });
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);  // the consumer's alone: it frees what it reads
    ended_ = true;
    there_.notify_one();
  }

  // Takes all waiting items at once, so that the threads do not wake each other for each one.
  void take() {
    std::unique_lock lock(mutex_);
    while (waiting_.empty() && !ended_) {
      there_.wait_for(lock, kHeardWithin);
      check_interrupt();
    }
    taken_.swap(waiting_);
    waiting_bytes_ = 0;
    lock.unlock();
    room_.notify_one();
  }

  bool put(T item, size_t bytes) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] {
      return unwanted_ || waiting_.empty() || waiting_bytes_ + bytes <= most_bytes_;
    });
    if (unwanted_) return false;
    const bool first = waiting_.empty();
    waiting_.push_back(std::move(item));
    waiting_bytes_ += bytes;
    lock.unlock();
    if (first) there_.notify_one();
    return true;
  }

  size_t most_bytes_;
  std::deque<T> taken_;  // used only by the consumer
  std::mutex mutex_;
  std::condition_variable there_;  // signals an item, or the end
  std::condition_variable room_;
  std::deque<T> waiting_;
  size_t waiting_bytes_ = 0;
  std::exception_ptr error_;
  bool ended_ = false;
  bool unwanted_ = false;
  std::thread thread_;  // last member: it uses all of the above
};

}  // namespace fp8kv
