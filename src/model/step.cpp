#include "model/step.h"

#include <algorithm>

#include "base/error.h"
#include "core/numbers/host_view.h"

namespace fp8kv {

Step::Step(Backend& backend, int64_t max_rows, int64_t max_sequences,
           int64_t max_pages_per_sequence, bool half_pages)
    : backend_(backend), max_pages_(max_pages_per_sequence) {
  const auto buffer = [&](int64_t n) { return backend.allocate(DType::i32, Shape{n}); };
  ids_buffer_ = buffer(max_rows);
  positions_buffer_ = buffer(max_rows);
  slots_buffer_ = buffer(max_rows);
  indptr_buffer_ = buffer(max_sequences + 1);
  page_table_buffer_ = buffer(max_sequences * max_pages_per_sequence);
  context_len_buffer_ = buffer(max_sequences);
  last_rows_buffer_ = buffer(max_sequences);
  states_buffer_ = buffer(max_sequences);
  if (half_pages) half_pages_buffer_ = buffer(max_sequences * max_pages_per_sequence);
  clear();
}

uint64_t Step::bytes() const {
  uint64_t bytes = 0;
  for (const Tensor* each :
       {&ids_buffer_, &positions_buffer_, &slots_buffer_, &indptr_buffer_, &page_table_buffer_,
        &context_len_buffer_, &last_rows_buffer_, &states_buffer_}) {
    bytes += each->view().bytes();
  }
  if (half_pages_buffer_) bytes += half_pages_buffer_->view().bytes();
  return bytes;
}

void Step::clear(StepSize computed_as) {
  for (auto* values :
       {&ids_, &positions_, &slots_, &page_table_, &context_len_, &last_rows_, &states_}) {
    values->clear();
  }
  history_.clear();
  places_.clear();
  indptr_ = {0};
  computed_as_ = computed_as;
}

void Step::add(std::span<const int32_t> ids, const KvCache::Sequence& sequence, bool wants_next,
               int32_t state, std::span<const int32_t> before) {
  const auto count = static_cast<int64_t>(ids.size());
  FP8KV_ASSERT(count > 0 && sequence.tokens >= count);
  FP8KV_ASSERT(static_cast<int64_t>(sequence.pages.size()) <= max_pages_);
  const size_t begin = history_.size();
  history_.insert(history_.end(), before.begin(), before.end());
  for (const int32_t id : ids) {
    places_.push_back({begin, history_.size()});
    history_.push_back(id);
  }
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  for (int64_t position = sequence.tokens - count; position < sequence.tokens; ++position) {
    positions_.push_back(static_cast<int32_t>(position));
    slots_.push_back(KvCache::slot(sequence, position));
  }
  indptr_.push_back(static_cast<int32_t>(ids_.size()));
  if (wants_next) last_rows_.push_back(static_cast<int32_t>(ids_.size()) - 1);
  context_len_.push_back(static_cast<int32_t>(sequence.tokens));
  states_.push_back(state);
  page_table_.insert(page_table_.end(), sequence.pages.begin(), sequence.pages.end());
  page_table_.resize(context_len_.size() * static_cast<size_t>(max_pages_), 0);
}

void Step::pad(int64_t rows, int32_t first_page) {
  for (int32_t slot = first_page * kPageSize; this->rows() < rows; ++slot) {
    last_rows_.push_back(static_cast<int32_t>(ids_.size()));
    places_.push_back({history_.size(), history_.size()});
    history_.push_back(0);
    ids_.push_back(0);
    positions_.push_back(0);
    slots_.push_back(slot);
    indptr_.push_back(static_cast<int32_t>(ids_.size()));
    context_len_.push_back(1);
    states_.push_back(-1);
    page_table_.push_back(first_page);
    page_table_.resize(context_len_.size() * static_cast<size_t>(max_pages_), first_page);
  }
}

void Step::newest_first(int64_t row, int64_t most, std::vector<int32_t>& out) const {
  const auto at = static_cast<size_t>(row);
  const int64_t count = std::min<int64_t>(most, int64_t{positions_[at]} + 1);
  const auto [begin, end] = places_[at];
  FP8KV_ASSERT(static_cast<int64_t>(end + 1 - begin) >= count);
  out.clear();
  for (int64_t back = 0; back < count; ++back) {
    out.push_back(history_[end - static_cast<size_t>(back)]);
  }
}

ConstTensorView Step::put(const Tensor& buffer, std::span<const int32_t> values,
                          const Shape& shape) {
  const TensorView to{buffer.view().data, DType::i32, shape};
  FP8KV_ASSERT(to.bytes() <= buffer.view().bytes());
  backend_.copy_in(to, host_view(values, shape));
  return to;
}

void Step::upload() {
  backend_.compute_as(computed_as_);
  const Shape rows{this->rows()};
  const auto n_sequences = static_cast<int64_t>(context_len_.size());
  ids_view_ = put(ids_buffer_, ids_, rows);
  last_rows_view_ =
      put(last_rows_buffer_, last_rows_, Shape{static_cast<int64_t>(last_rows_.size())});
  batch_.positions = put(positions_buffer_, positions_, rows);
  batch_.slots = put(slots_buffer_, slots_, rows);
  batch_.indptr = put(indptr_buffer_, indptr_, Shape{n_sequences + 1});
  batch_.page_table = put(page_table_buffer_, page_table_, Shape{n_sequences, max_pages_});
  batch_.states = put(states_buffer_, states_, Shape{n_sequences});
  batch_.context_len = put(context_len_buffer_, context_len_, Shape{n_sequences});
  if (!half_pages_buffer_) return;
  half_pages_.clear();
  for (const int32_t page : page_table_) half_pages_.push_back(2 * page);
  batch_.half_pages = put(*half_pages_buffer_, half_pages_, Shape{n_sequences, max_pages_});
}

}  // namespace fp8kv
