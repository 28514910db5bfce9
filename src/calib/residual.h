// The residual stream of all windows between layers: on the device, or in host memory with one
// batch at a time on the device while the next comes and the last goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "calib/window_plan.h"

namespace fp8kv {

class ResidualStream {
 public:
  // `resident`: on the backend; else the backend has transfers(), and batches go through its copy
  // queues from kCopyQueues - 1 on. Backend and plan outlive the stream.
  ResidualStream(Backend& backend, const WindowPlan& plan, int64_t dim, DType dtype, bool resident);
  ~ResidualStream();
  ResidualStream(const ResidualStream&) = delete;
  ResidualStream& operator=(const ResidualStream&) = delete;

  // What the constructor allocates on the backend.
  static uint64_t device_bytes(const WindowPlan& plan, int64_t dim, DType dtype, bool resident);

  // Sets rows from `first_row` on. REQUIRES that no batch was begun yet.
  void fill(int64_t first_row, std::span<const std::byte> rows);

  // The rows of a batch, for ops that are given to the backend from now on until end(). Batches are
  // begun in order, round and round.   [rows, dim]
  TensorView begin(size_t batch);
  void end();

  // Waits, and gives all rows in order, in parts.
  void read(const std::function<void(std::span<const std::byte>)>& sink);

 private:
  struct Slot {
    Tensor rows;   // [most_rows, dim]
    int arrived;   // mark behind the copy to the device
    int computed;  // behind the ops
    int left;      // behind the copy to the host
  };

  void fetch(size_t batch, Slot& slot);
  size_t bytes_of(const WindowBatch& batch) const;
  size_t offset_of(int64_t row) const;

  Backend& backend_;
  const WindowPlan& plan_;
  int64_t dim_;
  DType dtype_;
  Tensor resident_;                  // [total_rows, dim], or empty
  std::shared_ptr<std::byte> host_;  // the same in pinned memory
  Slot slots_[2];
  size_t batch_ = 0;  // the one that was begun
  uint64_t step_ = 0;
  bool fetched_ = false;  // the batch of the next begin() is on its way
};

}  // namespace fp8kv
