#include "kernels/sim/sim.h"

#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/sim/sim_arena.h"
#include "kernels/sim/sim_fiber.h"

namespace fp8kv::sim {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMinWarp = 32;

enum class Wait : uint8_t { running, block, warp, done };

struct Lane {
  Here here;
  Wait wait;
  Place place;
  size_t pieces_taken;
  unsigned parity;  // exchange area in use: a lane is at most one exchange ahead of another
  std::vector<AsyncCopy> open;
  std::vector<std::vector<AsyncCopy>> groups;
  std::vector<AsyncCopy> landed;
};

struct Warp {
  alignas(64) std::byte exchange[2][64 * kExchangeBytes];
  char tag;  // for ThreadSanitizer's synchronisation
};

std::string file_name(const char* path) {
  const std::string whole = path;
  const size_t slash = whole.rfind('/');
  return slash == std::string::npos ? whole : whole.substr(slash + 1);
}

std::string text(Place place) {
  return cat(file_name(place.file), ":", place.line);
}

bool same(Place a, Place b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

class Machine {
 public:
  void run(const LaunchShape& shape, const std::function<void()>& body);

  uint64_t order = 0;

  // Call it on a fiber.
  Lane& lane() { return lanes_[current_]; }
  size_t lane_index() const { return static_cast<size_t>(current_ % shape_->warp); }
  Warp& warp() { return warps_[current_ / shape_->warp]; }
  void wait(Wait kind, Place place);
  std::byte* take(size_t bytes, Place place);

 private:
  static void thread_main(int index);
  [[noreturn]] void fail_here(const std::string& what) const;
  void synchronise(int n_warps);
  void run_block(Grid block);
  void run_warp(int warp);
  int next_lane();
  bool release_warp(int warp);
  void release_block();
  int pick(int count) { return static_cast<int>(random_.next() % static_cast<uint64_t>(count)); }

  std::mutex mutex_;
  Fibers fibers_;
  std::unique_ptr<Lane[]> lanes_ = std::make_unique<Lane[]>(kMaxThreads);
  std::unique_ptr<Warp[]> warps_ = std::make_unique<Warp[]>(kMaxThreads / kMinWarp);
  Rng random_{0};
  const LaunchShape* shape_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  Grid block_;
  int current_ = 0;
  // The warp that runs, the order of its lanes, and the place in that order.
  int first_of_warp_ = 0, first_lane_ = 0, lane_step_ = 1, lanes_visited_ = 0;
  std::exception_ptr error_;
  Arena arena_;
  char start_tag_ = 0, end_tag_ = 0, block_tag_ = 0;
};

// Owned; null unless this thread records. This TLS model puts the plain pointer into the block that
// every thread starts with. A module's default is a block made at first use. If such a block begins
// 16 bytes into a page, g++ 12's LeakSanitizer takes the memory before it for a header, and reads
// whatever address that contains.
[[gnu::tls_model("initial-exec")]] thread_local std::vector<std::function<void()>>* recorded =
    nullptr;

Machine& machine() {
  static Machine instance;
  return instance;
}

void Machine::fail_here(const std::string& what) const {
  throw Error(cat("kernel ", shape_->kernel, ", block ", block_.x, " ", block_.y, " ", block_.z,
                  ": ", what),
              "", ErrorKind::device);
}

void Machine::thread_main(int index) {
  Machine& self = machine();
  Fibers::acquire(&self.start_tag_);
  try {
    (*self.body_)();
    Lane& lane = self.lanes_[index];
    if (!lane.open.empty() || !lane.groups.empty()) {
      self.fail_here(cat("thread ", index, " ends with asynchronous copies nobody waited for"));
    }
  } catch (...) {
    if (!self.error_) self.error_ = std::current_exception();
  }
  self.lanes_[index].wait = Wait::done;
  Fibers::release(&self.end_tag_);
}

void Machine::wait(Wait kind, Place place) {
  Lane& lane = lanes_[current_];
  lane.wait = kind;
  lane.place = place;
  void* tag = kind == Wait::block ? static_cast<void*>(&block_tag_) : &warp().tag;
  Fibers::release(tag);
  const int next = next_lane();
  if (next < 0) {
    fibers_.suspend();
  } else {
    current_ = next;
    fibers_.switch_to(next);
  }
  Fibers::acquire(tag);
}

std::byte* Machine::take(size_t bytes, Place place) {
  try {
    return arena_.take(lanes_[current_].pieces_taken++, bytes, current_);
  } catch (const ArenaFault& fault) {
    fail_here(cat(text(place), ": ", fault.what));
  }
}

// Runs every runnable lane of a warp, once. A lane that waits switches to the next one itself.
void Machine::run_warp(int warp) {
  const int width = shape_->warp;
  first_of_warp_ = warp * width;
  // The width is a power of two, so an odd step visits all lanes.
  first_lane_ = order == 0 ? 0 : pick(width);
  lane_step_ = order == 0 ? 1 : 2 * pick(width / 2) + 1;
  lanes_visited_ = 0;
  for (int next = next_lane(); next >= 0; next = next_lane()) {
    current_ = next;
    fibers_.resume(next);
    if (error_) std::rethrow_exception(error_);
  }
}

// The next runnable lane of the warp that runs, or -1 after the last.
int Machine::next_lane() {
  const int width = shape_->warp;
  while (lanes_visited_ < width) {
    const int visit = lanes_visited_++;
    const int index = first_of_warp_ + (first_lane_ + visit * lane_step_) % width;
    if (lanes_[index].wait == Wait::running) return index;
  }
  return -1;
}

// Lets the lanes of a warp go on when all are at the same warp operation. REQUIRES that no lane
// runs.
bool Machine::release_warp(int warp) {
  const int width = shape_->warp;
  const Lane* lanes = &lanes_[warp * width];
  int waiting = 0;
  int example = -1;
  for (int i = 0; i < width; ++i) {
    if (lanes[i].wait != Wait::warp) continue;
    ++waiting;
    if (example < 0) example = i;
    if (!same(lanes[i].place, lanes[example].place)) {
      fail_here(cat("lanes of one warp wait at ", text(lanes[example].place), " and at ",
                    text(lanes[i].place)));
    }
  }
  if (waiting == 0) return false;
  if (waiting != width) {
    fail_here(cat(text(lanes[example].place), ": warp operation reached by ", waiting, " of ",
                  width, " lanes"));
  }
  for (int i = 0; i < width; ++i) lanes_[warp * width + i].wait = Wait::running;
  return true;
}

// Lets all threads go on from a barrier. REQUIRES that no thread runs or waits for its warp.
void Machine::release_block() {
  int waiting = 0;
  int example = -1;
  for (int i = 0; i < shape_->threads; ++i) {
    if (lanes_[i].wait != Wait::block) continue;
    ++waiting;
    if (example < 0) example = i;
    if (!same(lanes_[i].place, lanes_[example].place)) {
      fail_here(cat("threads wait at different barriers, ", text(lanes_[example].place), " and ",
                    text(lanes_[i].place)));
    }
  }
  if (waiting == 0) return;
  if (waiting != shape_->threads) {
    fail_here(cat(text(lanes_[example].place), ": barrier reached by ", waiting, " of ",
                  shape_->threads, " threads"));
  }
  for (int i = 0; i < shape_->threads; ++i) lanes_[i].wait = Wait::running;
}

void Machine::run_block(Grid block) {
  block_ = block;
  arena_.begin_block(shape_->shared_bytes);
  for (int i = 0; i < shape_->threads; ++i) {
    Lane& lane = lanes_[i];
    lane.here = {i, shape_->threads, block, shape_->grid};
    lane.wait = Wait::running;
    lane.pieces_taken = 0;
    lane.parity = 0;
    lane.open.clear();
    lane.groups.clear();
    fibers_.start(i, thread_main);
  }
  Fibers::release(&start_tag_);
  const int n_warps = shape_->threads / shape_->warp;
  const auto running = [this] {
    for (int i = 0; i < shape_->threads; ++i) {
      if (lanes_[i].wait == Wait::running) return true;
    }
    return false;
  };
  while (running()) {
    const int first = order == 0 ? 0 : pick(n_warps);
    for (int i = 0; i < n_warps; ++i) {
      const int warp = (first + i) % n_warps;
      // Runs a warp as far as it gets or, now and then, only a step, so that warps interleave.
      do {
        run_warp(warp);
      } while (release_warp(warp) && (order == 0 || pick(4) != 0));
    }
    if (!running()) release_block();
  }
  Fibers::acquire(&end_tag_);
  try {
    arena_.end_block();
  } catch (const ArenaFault& fault) {
    fail_here(fault.what);
  }
}

void Machine::run(const LaunchShape& shape, const std::function<void()>& body) {
  const std::lock_guard lock(mutex_);
  shape_ = &shape;
  body_ = &body;
  block_ = {0, 0, 0};
  error_ = nullptr;
  random_ = Rng(order);
  if (shape.threads < 1 || shape.threads > kMaxThreads || shape.threads % shape.warp != 0) {
    fail_here(cat("launched with ", shape.threads, " threads, not a multiple of ", shape.warp,
                  " up to ", kMaxThreads));
  }
  if (shape.grid.x > 0x7FFFFFFFu || shape.grid.y > 65535u || shape.grid.z > 65535u) {
    fail_here("launched with a grid no GPU accepts");
  }
  if (shape.shared_bytes > most_shared_bytes(shape.warp)) {
    fail_here(cat("launched with ", shape.shared_bytes,
                  " bytes of shared memory, not every GPU has ", "more than ",
                  most_shared_bytes(shape.warp)));
  }
  fibers_.reserve(shape.threads);
  std::vector<Grid> blocks;
  for (unsigned z = 0; z < shape.grid.z; ++z) {
    for (unsigned y = 0; y < shape.grid.y; ++y) {
      for (unsigned x = 0; x < shape.grid.x; ++x) blocks.push_back({x, y, z});
    }
  }
  if (order != 0) {
    for (size_t i = blocks.size(); i > 1; --i) {
      std::swap(blocks[i - 1], blocks[random_.next() % i]);
    }
  }
  try {
    for (const Grid& block : blocks) run_block(block);
  } catch (...) {
    synchronise(shape.threads / shape.warp);
    throw;
  }
  arena_.end_launch();
}

// Orders all that fibers did before what follows, wherever a fault stopped them.
void Machine::synchronise(int n_warps) {
  Fibers::acquire(&end_tag_);
  Fibers::acquire(&block_tag_);
  for (int i = 0; i < n_warps; ++i) Fibers::acquire(&warps_[i].tag);
}

}  // namespace

void set_order(uint64_t seed) {
  machine().order = seed;
}

void launch(const LaunchShape& shape, const std::function<void()>& body) {
  if (recorded) {
    recorded->push_back([shape, body] { launch(shape, body); });
  } else {
    machine().run(shape, body);
  }
}

void run_foreign(const std::function<void()>& work) {
  if (recorded) {
    recorded->push_back(work);
  } else {
    work();
  }
}

void begin_recording() {
  recorded = new std::vector<std::function<void()>>;
}

std::vector<std::function<void()>> end_recording() {
  const std::unique_ptr<std::vector<std::function<void()>>> launches(
      std::exchange(recorded, nullptr));
  return std::move(*launches);
}

bool recording() {
  return recorded != nullptr;
}

const Here& here() {
  return machine().lane().here;
}

void block_sync(Place place) {
  machine().wait(Wait::block, place);
}

std::byte* exchange_slot() {
  Machine& m = machine();
  Lane& lane = m.lane();
  lane.parity ^= 1u;
  return m.warp().exchange[lane.parity] + m.lane_index() * kExchangeBytes;
}

const std::byte* exchange(Place place) {
  Machine& m = machine();
  const unsigned parity = m.lane().parity;
  Warp& warp = m.warp();
  m.wait(Wait::warp, place);
  return warp.exchange[parity];
}

std::byte* take_shared(size_t bytes, Place place) {
  return machine().take(bytes, place);
}

void async_copy(const AsyncCopy& copy) {
  std::memset(copy.to, 0xff, static_cast<size_t>(copy.bytes));
  machine().lane().open.push_back(copy);
}

void async_commit() {
  Lane& lane = machine().lane();
  lane.groups.push_back(std::move(lane.open));
  lane.open.clear();
}

std::span<const AsyncCopy> async_wait(int groups_left) {
  Lane& lane = machine().lane();
  lane.landed.clear();
  while (lane.groups.size() > static_cast<size_t>(groups_left)) {
    std::vector<AsyncCopy>& group = lane.groups.front();
    if (lane.landed.empty()) lane.landed.swap(group);  // mostly the only one
    lane.landed.insert(lane.landed.end(), group.begin(), group.end());
    lane.groups.erase(lane.groups.begin());
  }
  return lane.landed;
}

}  // namespace fp8kv::sim
