#include "calib/windows/residual.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr int kInQueue = kCopyQueues - 1;
constexpr int kOutQueue = kCopyQueues;
// Rows read from a device at a time.
constexpr int64_t kRowsAtOnce = 2048;

}  // namespace

ResidualStream::ResidualStream(Backend& backend, const WindowPlan& plan, int64_t dim, DType dtype,
                               bool resident)
    : backend_(backend), plan_(plan), dim_(dim), dtype_(dtype) {
  if (resident) {
    resident_ = backend.allocate(dtype, Shape{plan.total_rows, dim});
    return;
  }
  Transfers& transfers = *backend.transfers();
  host_ = transfers.allocate_pinned(offset_of(plan.total_rows));
  for (Slot& slot : slots_) {
    slot.rows = backend.allocate(dtype, Shape{plan.most_rows, dim});
    slot.arrived = transfers.make_mark();
    slot.computed = transfers.make_mark();
    slot.left = transfers.make_mark();
    transfers.record(slot.left, kOpsQueue);  // an op of allocate() clears the memory first
  }
}

// Waits for pending copies before their memory is freed.
ResidualStream::~ResidualStream() {
  if (!host_) return;
  try {
    for (const Slot& slot : slots_) {
      backend_.transfers()->wait_here(slot.arrived);
      backend_.transfers()->wait_here(slot.left);
    }
  } catch (const std::exception&) {  // the device is lost, and its copies with it
  }
}

uint64_t ResidualStream::device_bytes(const WindowPlan& plan, int64_t dim, DType dtype,
                                      bool resident) {
  const int64_t rows = resident ? plan.total_rows : 2 * plan.most_rows;
  return static_cast<uint64_t>(rows) * static_cast<uint64_t>(dim) * dtype_bytes(dtype);
}

size_t ResidualStream::offset_of(int64_t row) const {
  return static_cast<size_t>(row) * static_cast<size_t>(dim_) * dtype_bytes(dtype_);
}

size_t ResidualStream::bytes_of(const WindowBatch& batch) const {
  return offset_of(batch.rows);
}

void ResidualStream::fill(int64_t first_row, std::span<const std::byte> rows) {
  FP8KV_ASSERT(step_ == 0);
  if (host_) {
    std::memcpy(host_.get() + offset_of(first_row), rows.data(), rows.size());
    return;
  }
  const Shape shape{static_cast<int64_t>(rows.size() / offset_of(1)), dim_};
  backend_.copy_in({resident_.view().data + offset_of(first_row), dtype_, shape},
                   {rows.data(), dtype_, shape});
}

// The slot is free once its previous rows have left. Waits for the other slot as well: with a
// single batch, these rows are complete only once they have left it.
void ResidualStream::fetch(size_t batch, Slot& slot) {
  Transfers& transfers = *backend_.transfers();
  for (const Slot& each : slots_) transfers.wait(kInQueue, each.left);
  const WindowBatch& rows = plan_.batches[batch];
  transfers.to_device(kInQueue, slot.rows.view().data, host_.get() + offset_of(rows.first_row),
                      bytes_of(rows));
  transfers.record(slot.arrived, kInQueue);
}

TensorView ResidualStream::begin(size_t batch) {
  const WindowBatch& rows = plan_.batches[batch];
  const Shape shape{rows.rows, dim_};
  batch_ = batch;
  if (!host_) return {resident_.view().data + offset_of(rows.first_row), dtype_, shape};
  Transfers& transfers = *backend_.transfers();
  Slot& slot = slots_[step_ % 2];
  if (!fetched_) fetch(batch, slot);
  // With a single batch, the next batch is this one, which is not finished yet.
  fetched_ = plan_.batches.size() > 1;
  if (fetched_) fetch((batch + 1) % plan_.batches.size(), slots_[(step_ + 1) % 2]);
  transfers.wait(kOpsQueue, slot.arrived);
  return {slot.rows.view().data, dtype_, shape};
}

void ResidualStream::end() {
  ++step_;
  if (!host_) return;
  Transfers& transfers = *backend_.transfers();
  Slot& slot = slots_[(step_ - 1) % 2];
  const WindowBatch& rows = plan_.batches[batch_];
  transfers.record(slot.computed, kOpsQueue);
  transfers.wait(kOutQueue, slot.computed);
  transfers.to_host(kOutQueue, host_.get() + offset_of(rows.first_row), slot.rows.view().data,
                    bytes_of(rows));
  transfers.record(slot.left, kOutQueue);
}

void ResidualStream::read(const std::function<void(std::span<const std::byte>)>& sink) {
  if (host_) {
    for (const Slot& slot : slots_) backend_.transfers()->wait_here(slot.left);
    sink({host_.get(), offset_of(plan_.total_rows)});
    return;
  }
  std::vector<std::byte> part;
  for (int64_t row = 0; row < plan_.total_rows; row += kRowsAtOnce) {
    const Shape shape{std::min(kRowsAtOnce, plan_.total_rows - row), dim_};
    part.resize(offset_of(shape[0]));
    backend_.download({resident_.view().data + offset_of(row), dtype_, shape}, part);
    sink(part);
  }
}

}  // namespace fp8kv
