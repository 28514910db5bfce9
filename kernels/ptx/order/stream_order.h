// Which work is done before other work begins, as far as streams, events and waits of the host
// guarantee it. Host threads count as one.  CUDA C++ Programming Guide, "Asynchronous Concurrent
// Execution".
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace fp8kv::ptx {

// For each stream, how many pieces of its work are done.
class Clock {
 public:
  uint64_t of(int stream) const;
  void add_work(int stream);
  // Whatever `other` knows to be done is done for this too.
  void join(const Clock& other);

 private:
  std::vector<uint64_t> done_;
};

// A piece of work: number `clock.of(stream)` of its stream. All else in `clock` is done before it.
struct WorkTime {
  int stream = 0;
  Clock clock = {};

  uint64_t number() const { return clock.of(stream); }
  bool comes_after(int other, uint64_t number) const { return clock.of(other) >= number; }
};

class StreamOrder {
 public:
  // Returns the stream's number. It may be that of a removed stream, whose work then comes before.
  int add_stream();
  void remove_stream(int stream);
  // The stream gets its next piece of work.
  WorkTime begin_work(int stream);
  // This much is done when the stream's work so far is.
  Clock now(int stream) const;
  // Later work of the stream waits for this.
  void wait(int stream, const Clock& clock);
  // The host waits.
  void wait_here(const Clock& clock);
  void wait_for_all();
  Clock host() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Clock> streams_;
  std::vector<int> removed_;
  Clock host_;
  Clock all_;  // all work so far
};

}  // namespace fp8kv::ptx
