// The rows of one step, gathered on the host and put on the backend.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/cache/kv_cache.h"

namespace fp8kv {

// The size that steps of prompts and of calibration windows are computed as. So a token has the
// same bits however its text is cut into steps, and whatever is beside it.
inline constexpr StepSize kPromptStep{512, 512};

// Buffers for steps of up to `max_rows` rows and `max_sequences` sequences; reused from step to
// step. Between clear() calls, sequences are added one after another.
class Step {
 public:
  // With `half_pages`, the batch has them: models with differential attention need them.
  Step(Backend& backend, int64_t max_rows, int64_t max_sequences, int64_t max_pages_per_sequence,
       bool half_pages = false);

  // Forgets the rows. The next ones are computed as in a step of size `computed_as`.
  void clear(StepSize computed_as = {});
  // Adds rows for the last ids.size() tokens of `sequence`, which already has room for them; these
  // tokens are `ids`.
  // With `wants_next`, the sequence's last row joins last_rows(). `state` is the slot of its
  // states; -1: none, for sequences whose rows are all in this step. `before` are tokens directly
  // before `ids`: models with n-grams need NgramConfig::longest - 1, or all that there are.
  void add(std::span<const int32_t> ids, const KvCache::Sequence& sequence, bool wants_next = true,
           int32_t state = -1, std::span<const int32_t> before = {});
  // Adds dummy sequences of one row until there are `rows` rows: token 0 at position 0, stored to
  // slots of `first_page` and the pages after it. REQUIRES sequences of one row each before.
  void pad(int64_t rows, int32_t first_page);
  // Copies everything to the backend, and sets the step size that clear() was given. The views
  // below are valid until the next clear().
  void upload();

  int64_t rows() const { return static_cast<int64_t>(ids_.size()); }
  ConstTensorView ids() const { return ids_view_; }  // [rows] i32
  std::span<const int32_t> host_ids() const { return ids_; }
  // The id of a row, then those before it in its sequence: up to `most`, as far as they are known.
  // Throws an assertion if earlier ones were not given to add().
  void newest_first(int64_t row, int64_t most, std::vector<int32_t>& out) const;
  ConstTensorView last_rows() const {
    return last_rows_view_;
  }  // [sequences with wants_next] i32: last row of each
  uint64_t bytes() const;
  const Batch& batch() const { return batch_; }

 private:
  ConstTensorView put(const Tensor& buffer, std::span<const int32_t> values, const Shape& shape);

  Backend& backend_;
  int64_t max_pages_;
  std::vector<int32_t> history_;  // of each sequence: tokens before its rows, then theirs
  struct Place {
    size_t begin;  // of the row's sequence in history_
    size_t at;     // of the row
  };
  std::vector<Place> places_;  // of each row
  std::vector<int32_t> ids_, positions_, slots_, indptr_, page_table_, context_len_, last_rows_,
      states_, half_pages_;
  Tensor ids_buffer_, positions_buffer_, slots_buffer_, indptr_buffer_, page_table_buffer_,
      context_len_buffer_, last_rows_buffer_, states_buffer_;
  std::optional<Tensor> half_pages_buffer_;
  ConstTensorView ids_view_, last_rows_view_;
  Batch batch_;
  StepSize computed_as_;
};

}  // namespace fp8kv
