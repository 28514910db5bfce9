// What one thread makes and another takes, in the same order, so that files are read and unpacked
// while their text becomes tokens. Knows nothing of files or records.
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
  // Waits for room. False when nobody wants more: the maker is to return.
  using Put = std::function<bool(T item, size_t bytes)>;

  // Runs `make` in a thread of its own. At most `most_bytes` wait, or one item where that is
  // larger, and what waited before is held until it is taken. Throws std::system_error where there
  // can be no thread.
  ReadAhead(size_t most_bytes, std::function<void(const Put&)> make)
      : most_bytes_(most_bytes), thread_([this, make = std::move(make)] { run(make); }) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  // Waits until the maker has noticed.
  ~ReadAhead() {
    {
      const std::lock_guard lock(mutex_);
      unwanted_ = true;
    }
    room_.notify_one();
    thread_.join();
  }

  // nullopt at the end. Throws what the maker threw, behind all that it put before, and where an
  // interrupt has come.
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
    error_ = error;
    ended_ = true;
    there_.notify_one();
  }

  // All that waits, so that the threads do not wake each other for every item.
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
  std::deque<T> taken_;  // of the thread that takes
  std::mutex mutex_;
  std::condition_variable there_;  // an item, or the end
  std::condition_variable room_;
  std::deque<T> waiting_;
  size_t waiting_bytes_ = 0;
  std::exception_ptr error_;
  bool ended_ = false;
  bool unwanted_ = false;
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace fp8kv
