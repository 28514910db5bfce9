// The residual stream of all windows between two layers. It is either all on the device, or in host
// memory: then one batch is on the device to be computed, while the next one is copied in and the
// one before is copied out.
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
  // `resident`: all rows stay on the backend. Otherwise they are in host memory; this REQUIRES a
  // backend with transfers(), whose last two copy queues are used. Backend and plan must outlive
  // the stream.
  ResidualStream(Backend& backend, const WindowPlan& plan, int64_t dim, DType dtype, bool resident);
  ~ResidualStream();
  ResidualStream(const ResidualStream&) = delete;
  ResidualStream& operator=(const ResidualStream&) = delete;

  // What the constructor allocates on the backend.
  static uint64_t device_bytes(const WindowPlan& plan, int64_t dim, DType dtype, bool resident);

  // Sets rows from `first_row` on. REQUIRES that no batch was begun yet.
  void fill(int64_t first_row, std::span<const std::byte> rows);

  // The rows of a batch, to be used by ops until end(). REQUIRES the batches in order, and after
  // the last the first again.   [rows, dim]
  TensorView begin(size_t batch);
  void end();

  // Waits for all ops, then gives all rows to `sink` in order, in parts.
  void read(const std::function<void(std::span<const std::byte>)>& sink);

 private:
  struct Slot {
    Tensor rows;  // [most_rows, dim]
    // Marks that are reached when something is done:
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
  std::shared_ptr<std::byte> host_;  // the same in pinned memory
  Slot slots_[2];
  size_t batch_ = 0;  // the one that was begun
  uint64_t step_ = 0;
  bool fetched_ = false;  // the batch of the next begin() is on its way
};

}  // namespace fp8kv
