#include "eval/multi_cache_run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "backend/download_floats.h"
#include "base/error.h"
#include "base/machine/cpu_topology.h"
#include "core/numbers/histogram.h"
#include "core/numbers/host_view.h"
#include "model/step.h"

namespace fp8kv {
namespace {

// Rows that are summed in one job. A constant, so that results do not depend on threads.
constexpr int64_t kSumRows = 128;

bool is_in(const std::vector<size_t>& lanes, size_t lane) {
  return std::find(lanes.begin(), lanes.end(), lane) != lanes.end();
}

template <typename Number>
std::vector<Number> counting(size_t n) {
  std::vector<Number> numbers(n);
  std::iota(numbers.begin(), numbers.end(), Number{0});
  return numbers;
}

}  // namespace

MultiCacheRun::MultiCacheRun(Backend& backend, const ModelConfig& config,
                             const std::vector<std::vector<int32_t>>& windows,
                             std::vector<Lane> lanes, const MultiCacheOptions& options)
    : backend_(backend),
      config_(config),
      windows_(windows),
      n_measured_(options.n_measured),
      lanes_(std::move(lanes)),
      plan_(plan_windows(windows, {n_measured_ / 2, n_measured_})),
      pool_(options.threads > 0 ? options.threads : usable_cores()),
      forward_(backend, config, plan_.most_rows, plan_.longest_window),
      rows_(backend, config, plan_, CacheMemory::none, config.shares_caches(config.n_layers())) {
  const DType activation = forward_.activation_dtype();
  streams_.push_back(
      {backend.allocate(activation, Shape{plan_.total_rows, config.stream_dim()}), {}});
  streams_[0].lanes = counting<size_t>(lanes_.size());
  streams_[0].chosen = new_choice();
  const Shape attention{plan_.most_rows, config.n_heads, config.head_dim()};
  attended_ = backend.allocate(activation, attention);
  attended_again_ = backend.allocate(activation, attention);
  counters_ = backend.allocate(DType::u64, Shape{3, config.n_kv_heads(), kMagnitudeWords});
  const bool keep = config.shares_caches(config.n_layers());
  const int64_t pages = keep ? plan_.total_pages : plan_.most_pages;
  for (const Lane& lane : lanes_) {
    caches_.emplace_back(backend, config,
                         KvCacheOptions{lane.dtype, pages, 0, CacheMemory::in_turn}, lane.scales);
  }
  const std::vector<int32_t> rows = counting<int32_t>(static_cast<size_t>(plan_.most_rows));
  all_rows_ = backend.allocate(DType::i32, Shape{plan_.most_rows});
  backend.copy_in(all_rows_.view(), host_view(rows));
  int64_t measured_rows = 0;
  for (const WindowBatch& batch : plan_.batches) {
    if (is_measured(batch)) measured_rows += batch.rows;
  }
  attention_every_ = static_cast<size_t>(
      std::max<int64_t>(1, (measured_rows + options.attention_rows - 1) / options.attention_rows));
}

ChosenTokens MultiCacheRun::new_choice() const {
  return {backend_, config_, {plan_.most_rows, plan_.total_rows, plan_.longest_window}};
}

bool MultiCacheRun::is_attention_measured(const WindowBatch& batch) const {
  return is_measured(batch) && batch.index % attention_every_ == 0;
}

int64_t MultiCacheRun::attention_rows() const {
  int64_t rows = 0;
  for (const WindowBatch& batch : plan_.batches) {
    if (is_attention_measured(batch)) rows += batch.rows;
  }
  return rows;
}

void MultiCacheRun::embed(Embedding embedding) {
  embedding_.emplace(std::move(embedding));
  for (const WindowBatch& batch : plan_.batches) {
    rows_.begin(windows_, batch);
    embedding_->embed(rows_.step, rows_of(streams_[0], batch));
  }
}

void MultiCacheRun::begin_layer(int64_t index) {
  layer_ = index;
  magnitudes_.reset();
  first_tokens_ = {};
  const auto n_heads = config_.writes_cache(index) ? layer().n_kv_heads : 0;
  const std::vector<ErrorSums> heads(static_cast<size_t>(n_heads));
  errors_.assign(lanes_.size(), {heads, heads});
  if (n_heads == 0) return;
  magnitudes_ = TensorView{counters_.view().data, DType::u64, Shape{3, n_heads, kMagnitudeWords}};
  const std::vector<uint64_t> zeros(static_cast<size_t>(magnitudes_->shape.elements()));
  backend_.copy_in(*magnitudes_, host_view(zeros, magnitudes_->shape));
}

std::vector<LaneErrors> MultiCacheRun::end_layer() {
  return std::exchange(errors_, {});
}

void MultiCacheRun::run(const LayerWeights& weights, const WindowBatch& batch) {
  rows_.begin(windows_, batch);
  input_ = embedding_.value().layer_input(rows_.step, layer_);
  // Skips streams that fork off during the loop: fork() has already advanced them.
  const size_t n_streams = streams_.size();
  for (size_t stream = 0; stream < n_streams; ++stream) advance(stream, weights, batch);
}

TensorView MultiCacheRun::rows_of(const SharedStream& stream, const WindowBatch& batch) const {
  const TensorView& all = stream.hidden.view();
  const size_t row_bytes = static_cast<size_t>(config_.stream_dim()) * dtype_bytes(all.dtype);
  return {all.data + static_cast<size_t>(batch.first_row) * row_bytes, all.dtype,
          Shape{batch.rows, config_.stream_dim()}};
}

// The parts of the step that the end of a layer reads.
LayerStep MultiCacheRun::rest_of_step() const {
  return {.batch = rows_.step.batch(), .kv = {}, .input = input_};
}

void MultiCacheRun::advance(size_t stream, const LayerWeights& weights, const WindowBatch& batch) {
  const bool measured = stream == 0 && is_measured(batch);
  const size_t lead = streams_[stream].lanes[0];
  const TensorView x = rows_of(streams_[stream], batch);
  MixedRows mixed;
  // A window is one step, from its first row to its last, so no state has to survive it.
  forward_.add_ngrams(weights, x, {.batch = rows_.step.batch(), .kv = {}, .input = input_});
  if (config_.recurs_beside(layer_))
    mixed.read = forward_.recur(weights, x, rows_.step.batch(), {});
  if (!config_.attends(layer_)) return forward_.finish(weights, mixed, x, rest_of_step());
  const TensorView attended = attention_buffer(attended_, batch);
  const PagedKv cache = caches_[lead].layer(layer_);
  AttentionInputs inputs = forward_.project(layer_, weights, x,
                                            {.batch = rows_.step.batch(),
                                             .kv = cache,
                                             .magnitudes = measured ? magnitudes_ : std::nullopt});
  inputs.chosen = forward_.choose(layer_, weights, inputs, rows_.step.batch(),
                                  {caches_[lead].index_keys(layer_),
                                   streams_[stream].chosen.rows(batch.first_row, batch.rows)});
  forward_.attend(layer_, inputs, rows_.step.batch(), cache, attended);
  mixed.attended = attended;
  // All lanes of a stream read back the same values from the cache of an earlier layer.
  const bool compared = measured || streams_[stream].lanes.size() > 1;
  if (compared && config_.writes_cache(layer_)) {
    compare(stream, {inputs, mixed.read}, weights, batch);
  }
  forward_.finish(weights, mixed, x, rest_of_step());
}

// Measures lanes on the stream's Q, K and V. Lanes that read back other values move to a stream of
// their own, which runs through this layer at once.
void MultiCacheRun::compare(size_t stream, const Lead& lead, const LayerWeights& weights,
                            const WindowBatch& batch) {
  const AttentionInputs& inputs = lead.inputs;
  const bool with_attention = stream == 0 && is_attention_measured(batch);
  download_floats(backend_, inputs.k, k_);
  download_floats(backend_, inputs.v, v_);
  if (stream == 0 && is_measured(batch)) {
    measure_values();
    measure_first_tokens(batch);
  }
  if (with_attention) download_floats(backend_, attention_buffer(attended_, batch), exact_);
  const std::vector<size_t> members = streams_[stream].lanes;
  const std::vector<size_t> asked = with_attention ? counting<size_t>(lanes_.size()) : members;
  for (const std::vector<size_t>& group : alike(asked)) {
    // Later layers read this cache, so every lane that may fork until then needs its content.
    if (config_.lends_cache(layer_)) {
      for (const size_t lane : group) {
        if (lane == group[0] || !is_in(members, lane)) continue;
        forward_.append(inputs, rows_.step.batch(), caches_[lane].layer(layer_));
      }
    }
    if (group[0] == members[0]) continue;
    const TensorView attended = attention_buffer(attended_again_, batch);
    const PagedKv cache = caches_[group[0]].layer(layer_);
    forward_.append(inputs, rows_.step.batch(), cache);
    forward_.attend(layer_, inputs, rows_.step.batch(), cache, attended);
    if (with_attention) measure_attention(attended, group);
    std::vector<size_t> leaving;
    std::set_intersection(group.begin(), group.end(), members.begin(), members.end(),
                          std::back_inserter(leaving));
    if (leaving.empty()) continue;
    fork(stream, leaving);
    forward_.finish(weights, {attended, lead.read}, rows_of(streams_.back(), batch),
                    rest_of_step());
  }
}

// Makes a new stream for `leaving`, as a copy of the old one.
void MultiCacheRun::fork(size_t from, const std::vector<size_t>& leaving) {
  SharedStream& old = streams_[from];
  SharedStream& made = streams_.emplace_back();
  made.hidden = backend_.allocate(old.hidden.view().dtype, old.hidden.view().shape);
  made.lanes = leaving;
  made.chosen = new_choice();
  made.chosen.copy(backend_, old.chosen);
  for (const size_t lane : leaving) std::erase(old.lanes, lane);
  for (const WindowBatch& batch : plan_.batches) {
    const ConstTensorView ids{all_rows_.view().data, DType::i32, Shape{batch.rows}};
    backend_.embed(rows_of(old, batch), ids, rows_of(made, batch));
  }
}

// Groups `lanes` by equal values read back from the batch's K and V.
std::vector<std::vector<size_t>> MultiCacheRun::alike(const std::vector<size_t>& lanes) {
  std::vector<std::vector<size_t>> groups;
  for (const size_t lane : lanes) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& each) { return same_cache(each[0], lane); });
    if (group == groups.end()) {
      groups.push_back({lane});
    } else {
      group->push_back(lane);
    }
  }
  return groups;
}

bool MultiCacheRun::same_scales(size_t a, size_t b) const {
  const KvScales *scales_a = lanes_[a].scales, *scales_b = lanes_[b].scales;
  if (!scales_a || !scales_b) return scales_a == scales_b;
  const auto layer = static_cast<size_t>(layer_);
  return scales_a->layers[layer] == scales_b->layers[layer];
}

bool MultiCacheRun::same_cache(size_t a, size_t b) {
  const CacheType &type_a = lanes_[a].dtype.of(layer_), &type_b = lanes_[b].dtype.of(layer_);
  if (type_a == type_b && is_compute_dtype(type_a)) return true;
  const bool e4m3 = is_e4m3(type_a) || is_e4m3(type_b);
  if (e4m3 && lanes_[a].dtype.arithmetic != lanes_[b].dtype.arithmetic) return false;
  const std::optional<DType> elements_a = kv_elements(type_a), elements_b = kv_elements(type_b);
  if (!elements_a || !elements_b) return type_a == type_b && same_scales(a, b);
  std::atomic<bool> same = true;
  for_parts([&](const Part& part, int64_t /*index*/) {
    for (int64_t row = part.begin; row < part.end && same.load(std::memory_order_relaxed); ++row) {
      if (!reads_back_equal(*elements_a, scale_of(a, part), *elements_b, scale_of(b, part),
                            values_of(part, row))) {
        same = false;
      }
    }
  });
  return same;
}

void MultiCacheRun::add_lane_errors(size_t lane, const Part& part, int64_t row,
                                    ErrorSums& sums) const {
  const CacheType& type = lanes_[lane].dtype.of(layer_);
  const std::span<const float> values = values_of(part, row);
  if (lanes_[lane].dtype.arithmetic.toward_zero && type == CacheType(KvFormat::e4m3fn)) {
    return add_errors_toward_zero(scale_of(lane, part), values, sums);
  }
  KvRow stored{part.is_key ? type.k : type.v, static_cast<int32_t>(values.size()), 0};
  if (stored.format == KvFormat::ds_mla) {
    if (!part.is_key) return add_block_errors(values, sums);
    stored.format = KvFormat::bf16;
  }
  add_errors(stored, scale_of(lane, part), values, sums);
}

void MultiCacheRun::measure_values() {
  std::vector<std::vector<ErrorSums>> sums(lanes_.size());  // [lanes][parts]
  for (auto& of_lane : sums) of_lane.resize(static_cast<size_t>(n_parts()));
  for_parts([&](const Part& part, int64_t index) {
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      for (int64_t row = part.begin; row < part.end; ++row) {
        add_lane_errors(lane, part, row, sums[lane][static_cast<size_t>(index)]);
      }
    }
  });
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    for (int64_t i = 0; i < n_parts(); ++i) {
      const Part part = part_at(i);
      auto& heads = part.is_key ? errors_[lane].k : errors_[lane].v;
      heads[static_cast<size_t>(part.head)].add(sums[lane][static_cast<size_t>(i)]);
    }
  }
}

void MultiCacheRun::measure_first_tokens(const WindowBatch& batch) {
  const auto raise = [&](const std::vector<float>& values, float& first, float& later) {
    const auto width = std::ssize(values) / batch.rows;
    auto at = values.begin();
    const auto largest = [&](std::ptrdiff_t count) {
      float amax = 0;
      for (const auto end = at + count; at != end; ++at) amax = std::max(amax, std::abs(*at));
      return amax;
    };
    for (size_t i = 0; i < batch.count; ++i) {
      first = std::max(first, largest(width));
      later = std::max(later, largest((std::ssize(windows_[batch.first + i]) - 1) * width));
    }
  };
  raise(k_, first_tokens_.k_first, first_tokens_.k_later);
  raise(v_, first_tokens_.v_first, first_tokens_.v_later);
}

void MultiCacheRun::measure_attention(const TensorView& attended,
                                      const std::vector<size_t>& lanes) {
  download_floats(backend_, attended, lossy_);
  const int64_t width = attended.shape[1] * attended.shape[2];
  const int64_t rows = attended.shape[0];
  struct Sums {
    double error = 0, all = 0;
  };
  std::vector<Sums> sums(static_cast<size_t>((rows + kSumRows - 1) / kSumRows));
  pool_.run(static_cast<int64_t>(sums.size()), [&](int64_t job, int /*thread*/) {
    Sums& sum = sums[static_cast<size_t>(job)];
    const auto end = static_cast<size_t>(std::min(rows, (job + 1) * kSumRows) * width);
    for (auto i = static_cast<size_t>(job * kSumRows * width); i < end; ++i) {
      const double off = double{lossy_[i]} - double{exact_[i]};
      sum.error += off * off;
      sum.all += double{exact_[i]} * double{exact_[i]};
    }
  });
  for (const size_t lane : lanes) {
    for (const Sums& sum : sums) {
      errors_[lane].attention_squared_error += sum.error;
      errors_[lane].attention_squared += sum.all;
    }
  }
}

int64_t MultiCacheRun::n_parts() const {
  return 2 * layer().n_kv_heads * ((kv_rows() + kSumRows - 1) / kSumRows);
}

// By V, since K of a latent that does not rotate has no elements.
int64_t MultiCacheRun::kv_rows() const {
  return static_cast<int64_t>(v_.size()) / (layer().n_kv_heads * layer().v_head_dim);
}

MultiCacheRun::Part MultiCacheRun::part_at(int64_t index) const {
  const int64_t n_heads = layer().n_kv_heads;
  const int64_t block = index / 2 / n_heads;
  return {index % 2 == 0, index / 2 % n_heads, block * kSumRows,
          std::min(kv_rows(), (block + 1) * kSumRows)};
}

template <typename Work>
void MultiCacheRun::for_parts(const Work& work) {
  pool_.run(n_parts(), [&](int64_t job, int /*thread*/) { work(part_at(job), job); });
}

std::span<const float> MultiCacheRun::values_of(const Part& part, int64_t row) const {
  const std::vector<float>& values = part.is_key ? k_ : v_;
  const int64_t size = part.is_key ? layer().own_k_dim() : layer().v_head_dim;
  const int64_t first = (row * layer().n_kv_heads + part.head) * size;
  return std::span(values).subspan(static_cast<size_t>(first), static_cast<size_t>(size));
}

float MultiCacheRun::scale_of(size_t lane, const Part& part) const {
  if (!lanes_[lane].scales) return 1.0f;
  const LayerScales& layer = lanes_[lane].scales->layers[static_cast<size_t>(layer_)];
  const std::vector<float>& scales = part.is_key ? layer.k : layer.v;
  return scales[scales.size() == 1 ? 0 : static_cast<size_t>(part.head)];
}

TensorView MultiCacheRun::attention_buffer(const Tensor& buffer, const WindowBatch& batch) const {
  const TensorView& all = buffer.view();
  return {all.data, all.dtype, Shape{batch.rows, config_.n_heads_of(layer_), layer().v_head_dim}};
}

}  // namespace fp8kv
