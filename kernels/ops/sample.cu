// Draws the next token for each row of logits. All sums are of integers, so any order of threads
// gives the CPU's ids; see core/numbers/sampling.h.
#include "core/numbers/sampling.h"
#include "kernels/launch_rows.h"

namespace fp8kv::FP8KV_GPU {
namespace {

// The most threads that a block can have. One multiprocessor reads a row, and waits for memory or
// for its few double-precision units; more threads wait less.
constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarp;
constexpr int kDigits = 256;  // keys are compared eight bits at a time

// The largest of the warp's numbers, in every lane.
__device__ inline uint64_t largest_of_warp(uint64_t x) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    const uint64_t other = warp_xor(x, mask);
    x = other > x ? other : x;
  }
  return x;
}

// The sum of the numbers of all threads before this one; `total` gets the sum of all.   warps: room
// for kWarps numbers, which nobody may touch until the next barrier
template <typename T>
__device__ inline T sum_before(T own, T* warps, T& total) {
  T sum = own;  // inclusive within the warp
  for (int step = 1; step < kWarp; step *= 2) {
    const T other = warp_from(sum, lane_index() < step ? 0 : lane_index() - step);
    if (lane_index() >= step) sum += other;
  }
  if (lane_index() == kWarp - 1) warps[warp_index()] = sum;
  block_sync();
  T before = sum - own;
  total = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    if (warp < warp_index()) before += warps[warp];
    total += warps[warp];
  }
  return before;
}

// Keeps all tokens above `key`, and the `ties` tokens at `key` with the lowest ids.
struct Cut {
  uint32_t key = 0;  // below that of any number
  int32_t ties = 0;
};

struct SharedState {
  uint64_t best;    // key and inverted id of the largest
  uint64_t no_nan;  // inverted id of the first NaN; 0: none
  uint64_t total;
  Cut cut;
  int32_t digit;
  uint64_t above;  // sum over larger digits
};

// One row, by one block.
class Row {
 public:
  __device__ Row(const SampleArguments& arguments, Shared& shared)
      : vocab_(arguments.vocab_size),
        state_(shared.take<SharedState>(1)),
        counts_(shared.take<uint32_t>(kDigits)),
        sums_(shared.take<uint64_t>(kDigits)) {
    const int row = static_cast<int>(block_index().x);
    logits_ = arguments.logits + static_cast<int64_t>(row) * vocab_;
    temperature_ = arguments.temperature[row];
    top_k_ = arguments.top_k[row];
    top_p_ = arguments.top_p[row];
    random_ = sampling_random(arguments.seed[row], static_cast<uint32_t>(arguments.position[row]));
    out_ = arguments.ids + row;
  }

  __device__ inline void run() {
    find_largest();
    const uint64_t nan = state_->no_nan;
    const auto largest = static_cast<int32_t>(~static_cast<uint32_t>(state_->best));
    if (nan != 0 || temperature_ == 0.0f) {
      if (thread_index() == 0) {
        *out_ = nan != 0 ? -1 - static_cast<int32_t>(~static_cast<uint32_t>(nan)) : largest;
      }
      return;
    }
    max_ = logits_[largest];
    if (thread_index() == 0) state_->cut = Cut{};
    block_sync();
    if (top_k_ > 0 && top_k_ < vocab_) cut_to_count(static_cast<uint64_t>(top_k_));
    if (top_p_ < 1.0f) cut_to_share();
    draw();
  }

 private:
  __device__ inline uint64_t weight(float logit) const {
    return sampling_weight(logit, max_, temperature_);
  }

  __device__ inline void find_largest() {
    if (thread_index() == 0) state_->best = state_->no_nan = 0;
    block_sync();
    uint64_t best = 0, nan = 0;
#pragma unroll 4
    for (int id = thread_index(); id < vocab_; id += kThreads) {
      const float logit = logits_[id];
      const uint64_t inverted = ~static_cast<uint32_t>(id);
      if (logit != logit) {
        nan = nan == 0 ? inverted : nan;
      } else {
        const uint64_t one = static_cast<uint64_t>(sampling_key(logit)) << 32 | inverted;
        best = one > best ? one : best;
      }
    }
    best = largest_of_warp(best);
    nan = largest_of_warp(nan);
    if (lane_index() == 0) {
      atomic_max(&state_->best, best);
      atomic_max(&state_->no_nan, nan);
    }
    block_sync();
  }

  // Counts the tokens in `cut` for each digit and, if `weigh`, adds up their weights. Only keys
  // that begin with the bits of `key` above `shift` + 8 count.
  __device__ inline void count_digits(const Cut& cut, uint32_t key, int shift, bool weigh) {
    if (thread_index() < kDigits) {
      counts_[thread_index()] = 0;
      sums_[thread_index()] = 0;
    }
    block_sync();
    const auto belongs = [&](uint32_t other) {
      return shift == 24 || other >> (shift + 8) == key >> (shift + 8);
    };
    const auto count = [&](uint32_t of, uint32_t times) {
      const uint32_t digit = of >> shift & 0xFFu;
      shared_add(counts_ + digit, times);
      if (weigh) atomic_add(sums_ + digit, times * weight(sampling_logit(of)));
    };
    for (int id = thread_index(); id < vocab_; id += kThreads) {
      const uint32_t own = sampling_key(logits_[id]);
      if (own > cut.key && belongs(own)) count(own, 1);
    }
    if (thread_index() == 0 && cut.ties > 0 && belongs(cut.key)) {
      count(cut.key, static_cast<uint32_t>(cut.ties));
    }
    block_sync();
  }

  // Finds the largest digit whose amount, with that of all larger digits, reaches `wanted`. `above`
  // gets the sum of the larger digits.
  template <typename T>
  __device__ inline void find_digit(const T* amounts, uint64_t wanted) {
    if (thread_index() == 0) {
      uint64_t above = 0;
      int digit = kDigits - 1;
      while (digit > 0 && above + amounts[digit] < wanted) above += amounts[digit--];
      state_->digit = digit;
      state_->above = above;
    }
    block_sync();
  }

  // Narrows the cut to the `wanted` likeliest.
  __device__ inline void cut_to_count(uint64_t wanted) {
    const Cut before = state_->cut;
    uint32_t key = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
      count_digits(before, key, shift, false);
      find_digit(counts_, wanted);
      key |= static_cast<uint32_t>(state_->digit) << shift;
      wanted -= state_->above;
      block_sync();
    }
    if (thread_index() == 0) state_->cut = {key, static_cast<int32_t>(wanted)};
    block_sync();
  }

  // Narrows the cut to the likeliest tokens that make up top_p of it.
  __device__ inline void cut_to_share() {
    const Cut before = state_->cut;
    uint32_t key = 0;
    uint64_t wanted = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
      count_digits(before, key, shift, true);
      if (shift == 24) {
        if (thread_index() == 0) {
          state_->total = 0;
          for (int digit = 0; digit < kDigits; ++digit) state_->total += sums_[digit];
        }
        block_sync();
        wanted = sampling_share(top_p_, state_->total);
      }
      find_digit(sums_, wanted);
      key |= static_cast<uint32_t>(state_->digit) << shift;
      wanted -= state_->above;
      block_sync();
    }
    if (thread_index() == 0) {
      // Some of the share is still missing at this key, so its tokens have a weight above 0.
      const uint64_t each = weight(sampling_logit(key));
      state_->cut = {key, static_cast<int32_t>((wanted + each - 1) / each)};
    }
    block_sync();
  }

  // Each thread has a run of ids. It adds up their weights first. The thread whose run contains the
  // drawn number then looks for the token.
  __device__ inline void draw() {
    const Cut cut = state_->cut;
    const int per_thread = (vocab_ + kThreads - 1) / kThreads;
    const int first = thread_index() * per_thread < vocab_ ? thread_index() * per_thread : vocab_;
    const int last = first + per_thread < vocab_ ? first + per_thread : vocab_;
    const uint64_t tie_weight = cut.ties > 0 ? weight(sampling_logit(cut.key)) : 0;
    uint64_t sum = 0;
    uint32_t ties = 0;
    for (int id = first; id < last; ++id) {
      const uint32_t key = sampling_key(logits_[id]);
      if (key > cut.key) sum += weight(logits_[id]);
      if (key == cut.key) ++ties;
    }
    uint32_t all_ties = 0;
    const uint32_t before = sum_before(ties, counts_, all_ties);
    const auto most = static_cast<uint32_t>(cut.ties);
    const uint32_t left = before < most ? most - before : 0;
    const uint32_t kept = ties < left ? ties : left;
    sum += kept * tie_weight;
    uint64_t total = 0;
    const uint64_t start = sum_before(sum, sums_, total);
    const uint64_t drawn = sampling_below(random_, total);
    if (drawn >= start && drawn - start < sum) find(cut, kept, first, drawn - start);
  }

  // REQUIRES that the kept tokens from `id` on weigh more than `left`; `ties` of them are at the
  // cut.
  __device__ inline void find(const Cut& cut, uint32_t ties, int id, uint64_t left) {
    for (;; ++id) {
      const uint32_t key = sampling_key(logits_[id]);
      if (key < cut.key || (key == cut.key && ties == 0)) continue;
      if (key == cut.key) --ties;
      const uint64_t own = weight(logits_[id]);
      if (left < own) break;
      left -= own;
    }
    *out_ = id;
  }

  int vocab_;
  SharedState* state_;
  uint32_t* counts_;  // [kDigits]
  uint64_t* sums_;    // [kDigits]
  const float* logits_;
  float temperature_;
  int32_t top_k_;
  float top_p_;
  uint64_t random_;
  int32_t* out_;
  float max_ = 0.0f;
};

// One block per row.
__global__ void __launch_bounds__(kThreads) sample_kernel(SampleArguments arguments) {
  after_previous();
  Shared shared;
  Row(arguments, shared).run();
}

}  // namespace

void sample(Stream stream, int64_t n, const SampleArguments& arguments) {
  constexpr size_t kSharedBytes = (sizeof(SharedState) + 15) / 16 * 16 + kDigits * 12;
  launch("sample", sample_kernel, {static_cast<unsigned>(n)}, kThreads, kSharedBytes, stream,
         arguments);
}

}  // namespace fp8kv::FP8KV_GPU
