#include "kernels/sim/sim_queues.h"

#include <utility>

namespace fp8kv::sim {
namespace {

constexpr uint64_t kLate = 1;

uint64_t interleaving = 0;

}  // namespace

void set_interleaving(uint64_t seed) {
  interleaving = seed;
}

Queues::Queues(int count)
    : seed_(interleaving), random_(seed_), queues_(static_cast<size_t>(count)) {}

bool Queues::reached(const Point& point) const {
  return queues_[static_cast<size_t>(point.queue)].done >= point.position;
}

// Work counts as done even if it throws: it is not tried again.
void Queues::run_front(Queue& queue) {
  const Item item = std::move(queue.items.front());
  queue.items.pop_front();
  ++queue.done;
  if (item.work) item.work();
}

// Ends, since the work before a mark was submitted before anyone waits for the mark.
void Queues::run_until(const Point& point) {
  Queue& queue = queues_[static_cast<size_t>(point.queue)];
  while (queue.done < point.position) {
    if (const auto after = queue.items.front().after) run_until(*after);
    run_front(queue);
  }
}

// Now and then runs some of the runnable work, from queues at random.
void Queues::run_some() {
  for (uint64_t steps = random_.next() % 4; steps > 0; --steps) {
    Queue& queue = queues_[random_.next() % queues_.size()];
    if (queue.items.empty()) continue;
    const auto& after = queue.items.front().after;
    if (!after || reached(*after)) run_front(queue);
  }
}

void Queues::put(int queue, Item item) {
  const std::lock_guard lock(mutex_);
  Queue& to = queues_[static_cast<size_t>(queue)];
  to.items.push_back(std::move(item));
  ++to.submitted;
  if (seed_ == 0) run_until({queue, to.submitted});
  if (seed_ > kLate) run_some();
}

void Queues::submit(int queue, std::function<void()> work) {
  put(queue, {std::move(work), std::nullopt});
}

int Queues::make_mark() {
  const std::lock_guard lock(mutex_);
  marks_.emplace_back();
  return static_cast<int>(marks_.size()) - 1;
}

void Queues::record(int mark, int queue) {
  const std::lock_guard lock(mutex_);
  marks_[static_cast<size_t>(mark)] = Point{queue, queues_[static_cast<size_t>(queue)].submitted};
}

void Queues::wait(int queue, int mark) {
  std::optional<Point> point;
  {
    const std::lock_guard lock(mutex_);
    point = marks_[static_cast<size_t>(mark)];
  }
  if (point) put(queue, {nullptr, point});
}

void Queues::finish_mark(int mark) {
  const std::lock_guard lock(mutex_);
  if (const auto point = marks_[static_cast<size_t>(mark)]) run_until(*point);
}

void Queues::finish(int queue) {
  const std::lock_guard lock(mutex_);
  run_until({queue, queues_[static_cast<size_t>(queue)].submitted});
}

void Queues::finish_all() {
  const std::lock_guard lock(mutex_);
  for (size_t queue = 0; queue < queues_.size(); ++queue) {
    run_until({static_cast<int>(queue), queues_[queue].submitted});
  }
}

}  // namespace fp8kv::sim
