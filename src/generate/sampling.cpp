#include "generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "core/numbers/host_view.h"

namespace fp8kv {
namespace {

[[noreturn]] void fail_option(const char* name, double value, const char* expected) {
  fail(name, ": is ", value, ", expected ", expected);
}

}  // namespace

void check_sampling(const SamplingOptions& options) {
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    fail_option("temperature", double{options.temperature}, "a number from 0");
  }
  if (options.top_k < 0) fail_option("top_k", double(options.top_k), "an integer from 0");
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    fail_option("top_p", double{options.top_p}, "a number above 0, at most 1");
  }
}

uint64_t sequence_seed(uint64_t seed, uint64_t index) {
  return Rng(Rng(seed).next() ^ index).next();
}

SamplingRows::SamplingRows(Backend& backend, int64_t max_rows)
    : backend_(backend),
      temperature_(backend.allocate(DType::f32, Shape{max_rows})),
      top_k_(backend.allocate(DType::i32, Shape{max_rows})),
      top_p_(backend.allocate(DType::f32, Shape{max_rows})),
      seed_(backend.allocate(DType::u64, Shape{max_rows})) {}

void SamplingRows::upload(std::span<const SamplingOptions> rows) {
  if (std::ranges::equal(rows, rows_)) return;
  rows_.assign(rows.begin(), rows.end());
  const auto put = [&]<typename T>(const Tensor& buffer, T SamplingOptions::*member) {
    std::vector<T> values;
    for (const SamplingOptions& row : rows_) values.push_back(row.*member);
    const TensorView to = buffer.first(static_cast<int64_t>(values.size()));
    backend_.copy_in(to, host_view(values));
  };
  put(temperature_, &SamplingOptions::temperature);
  put(top_k_, &SamplingOptions::top_k);
  put(top_p_, &SamplingOptions::top_p);
  put(seed_, &SamplingOptions::seed);
}

Sampling SamplingRows::at(const ConstTensorView& position) const {
  const auto n = static_cast<int64_t>(rows_.size());
  return {temperature_.first(n), top_k_.first(n), top_p_.first(n), seed_.first(n), position};
}

uint64_t SamplingRows::bytes() const {
  return temperature_.view().bytes() + top_k_.view().bytes() + top_p_.view().bytes() +
         seed_.view().bytes();
}

}  // namespace fp8kv
