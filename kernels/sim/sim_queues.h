// The queues of a simulated device. Work runs in order within a queue, and between queues in any
// order that the marks allow. Like sim.h, it is strict: with a seed, work that nobody waits for
// runs late or between other work. So a missing wait shows in the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/rng.h"

namespace fp8kv::sim {

// For queues made from now on. 0: everything runs at once. 1: everything runs as late as possible,
// when the host waits for it. Otherwise the seed decides when work runs.
void set_interleaving(uint64_t seed);

// Every member may be called from several threads. Work runs on the thread whose call makes it run;
// its exceptions leave that call.
class Queues {
 public:
  explicit Queues(int count);

  void submit(int queue, std::function<void()> work);
  int make_mark();
  void record(int mark, int queue);
  void wait(int queue, int mark);
  void finish_mark(int mark);
  void finish(int queue);
  void finish_all();

 private:
  struct Point {
    int queue;
    uint64_t position;  // reached when the queue has done this much work
  };
  struct Item {
    std::function<void()> work;
    std::optional<Point> after;
  };
  struct Queue {
    std::deque<Item> items;
    uint64_t submitted = 0;
    uint64_t done = 0;
  };

  bool reached(const Point& point) const;
  void run_front(Queue& queue);
  void run_until(const Point& point);
  void run_some();
  void put(int queue, Item item);

  const uint64_t seed_;
  std::mutex mutex_;
  Rng random_;
  std::vector<Queue> queues_;
  std::vector<std::optional<Point>> marks_;
};

}  // namespace fp8kv::sim
