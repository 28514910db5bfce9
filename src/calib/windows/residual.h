// The residual stream of all windows between two layers, either all on the device or in host
// memory. In host memory, the device computes one batch while the next is copied in and the last
// copied out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "calib/windows/window_plan.h"

namespace fp8kv {

class ResidualStream {
 public:
  // `resident`: all rows stay on the backend. Otherwise they are in host memory. That REQUIRES a
  // backend with transfers(), and uses its last two copy queues. Backend and plan must outlive the
  // stream.
  ResidualStream(Backend& backend, const WindowPlan& plan, int64_t dim, DType dtype, bool resident);
  ~ResidualStream();
  ResidualStream(const ResidualStream&) = delete;
  ResidualStream& operator=(const ResidualStream&) = delete;

  // The bytes that the constructor allocates on the backend.
  static uint64_t device_bytes(const WindowPlan& plan, int64_t dim, DType dtype, bool resident);

  // Sets rows from `first_row` on. REQUIRES that no batch has begun yet.
  void fill(int64_t first_row, std::span<const std::byte> rows);

  // Returns the rows of a batch for ops to use until end(). REQUIRES the batches in order, starting
  // over after the last.   [rows, dim]
  TensorView begin(size_t batch);
  void end();

  // Waits for all ops, then gives all rows to `sink` in order, in parts.
  void read(const std::function<void(std::span<const std::byte>)>& sink);

 private:
  struct Slot {
    Tensor rows;  // [most_rows, dim]
    // Marks that are reached when one of these is done:
    int arrived;   // the copy to the device
    int computed;  // the ops
    int left;      // the copy to the host
  };

  void fetch(size_t batch, Slot& slot);
  size_t bytes_of(const WindowBatch& batch) const;
  size_t offset_of(int64_t row) const;

  Backend& backend_;
  const WindowPlan& plan_;
  int64_t dim_;
  DType dtype_;
  Tensor resident_;                  // [total_rows, dim], or empty
  std::shared_ptr<std::byte> host_;  // [total_rows, dim] in pinned memory, unless resident
  Slot slots_[2];
  size_t batch_ = 0;  // the batch that begin() returned
  uint64_t step_ = 0;
  bool fetched_ = false;  // the next batch is being copied in
};

}  // namespace fp8kv
