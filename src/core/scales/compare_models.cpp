#include "core/scales/compare_models.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "core/numbers/dtype.h"
#include "core/numbers/half.h"
#include "core/scales/scales.h"

namespace fp8kv {
namespace {

constexpr size_t kMostNamed = 3;
// The squared distance of two unrelated tensors. A tensor counts for no more than that, and for
// exactly that if its distance cannot be measured.
constexpr double kAnother = 2.0;

std::vector<std::string> config_differences(const std::vector<ConfigNumber>& made_for,
                                            const std::vector<ConfigNumber>& found) {
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const ConfigNumber& number : made_for) values[number.key].second = number.value;
  for (const ConfigNumber& number : found) values[number.key].first = number.value;
  std::vector<std::string> differences;
  const auto shown = [](const std::string& value) {
    return value.empty() ? std::string("not set") : plain(value);
  };
  for (const auto& [key, pair] : values) {
    if (pair.first == pair.second) continue;
    differences.push_back(
        cat(plain(key), " is ", shown(pair.first), " instead of ", shown(pair.second)));
  }
  return differences;
}

std::string value_of(const std::vector<ConfigNumber>& config, std::string_view key) {
  const auto at = std::find_if(config.begin(), config.end(),
                               [&](const ConfigNumber& number) { return number.key == key; });
  return at == config.end() ? "" : at->value;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Decodes one weight from hex digits of its little-endian bytes in the file.
double weight_of(std::string_view digits, DType dtype) {
  uint32_t bits = 0;
  for (size_t byte = digits.size() / 2; byte-- > 0;) {
    uint32_t value = 0;
    std::from_chars(digits.data() + 2 * byte, digits.data() + 2 * byte + 2, value, 16);
    bits = bits << 8 | value;
  }
  switch (dtype) {
    case DType::f16:
      return f16_to_float(static_cast<uint16_t>(bits));
    case DType::bf16:
      return bf16_to_float(static_cast<uint16_t>(bits));
    default:
      return std::bit_cast<float>(bits);
  }
}

// (sum of squared differences) / (sum of squares), over the samples that both models have.
double moved_squared(std::string_view before, std::string_view after, DType dtype) {
  const size_t width = 2 * dtype_bytes(dtype);
  double differences = 0, squares = 0;
  for (size_t at = 0; at + width <= std::min(before.size(), after.size()); at += width) {
    const double a = weight_of(before.substr(at, width), dtype);
    const double b = weight_of(after.substr(at, width), dtype);
    differences += (b - a) * (b - a);
    squares += a * a;
  }
  if (differences == 0) return 0;
  const double ratio = differences / squares;
  return ratio < kAnother ? ratio : kAnother;  // also if `squares` is 0, or a weight is NaN
}

double moved(const WeightsIdentity& before, const WeightsIdentity& after, DType dtype) {
  const auto a = words_of(before.samples), b = words_of(after.samples);
  if (a.empty() || a.size() != b.size()) return kAnother;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += moved_squared(a[i], b[i], dtype);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// The factor between two sizes, 1 or more.
double factor_of(double before, double after) {
  if (before == after) return 1;
  const double factor = std::max(before, after) / std::min(before, after);
  return factor >= 1 ? factor : HUGE_VAL;  // also if one is NaN
}

void note_size(double before, double after, const std::string& of, ModelComparison& out) {
  const double factor = factor_of(before, after);
  if (factor <= out.grown) return;
  out.grown = factor;
  if (factor <= kMostGrown) return;
  const std::string by = std::isinf(factor) ? "of another size"
                         : factor < 1e6     ? cat(fixed(factor, factor < 10 ? 1 : 0), " times as ",
                                              after > before ? "large" : "small")
                                            : "more than a million times as large or small";
  out.grown_text = cat("rows of ", of, " that are ", by);
}

// Identities in files of older versions have no rows. Then no rows are compared.
void compare_rows(const ModelIdentity& made_for, const ModelIdentity& found, ModelComparison& out) {
  const size_t n = std::min(made_for.rows.size(), found.rows.size());
  for (size_t i = 0; i < n; ++i) {
    const RowsIdentity &a = made_for.rows[i], &b = found.rows[i];
    if (a.digest == b.digest) continue;
    if (std::find(out.layers.begin(), out.layers.end(), i) == out.layers.end()) {
      out.layers.push_back(i);
    }
    for (size_t tensor = 0; tensor < std::min(a.sizes.size(), b.sizes.size()); ++tensor) {
      const RowSizes &before = a.sizes[tensor], &after = b.sizes[tensor];
      const std::string of = after.name.empty() ? cat("layer ", i) : quote(after.name);
      note_size(before.all, after.all, of, out);
      note_size(before.largest, after.largest, of, out);
    }
  }
  std::sort(out.layers.begin(), out.layers.end());
}

void compare_weights(const ModelIdentity& made_for, const ModelIdentity& found, DType dtype,
                     ModelComparison& out) {
  const auto note = [&](const WeightsIdentity& before, const WeightsIdentity& after,
                        const std::string& name) {
    const double by = moved(before, after, dtype);
    if (by <= out.moved) return;
    out.moved = by;
    out.moved_most = name;
  };
  for (size_t i = 0; i < made_for.layers.size(); ++i) {
    if (made_for.layers[i].digest == found.layers[i].digest) continue;
    out.layers.push_back(i);
    note(made_for.layers[i], found.layers[i], cat("layer ", i));
  }
  out.embedding = made_for.embedding.digest != found.embedding.digest;
  if (out.embedding) note(made_for.embedding, found.embedding, "the embedding");
}

}  // namespace

ModelComparison compare_models(const ModelIdentity& made_for, const ModelIdentity& found) {
  ModelComparison out;
  out.config = config_differences(made_for.config, found.config);
  out.rest = made_for.rest != found.rest;
  const auto dtype = dtype_from_torch_name(value_of(made_for.config, "torch_dtype"));
  const bool alike = out.config.empty() && made_for.layers.size() == found.layers.size();
  if (!alike || !dtype || !is_compute_dtype(*dtype)) {
    out.match = ModelMatch::other;
    return out;
  }
  compare_weights(made_for, found, *dtype, out);
  compare_rows(made_for, found, out);
  if (out.layers.empty() && !out.embedding) {
    out.match = out.rest ? ModelMatch::same_kv : ModelMatch::same;
  } else {
    const bool near = out.moved <= kMostMoved && out.grown <= kMostGrown;
    out.match = near ? ModelMatch::fine_tune : ModelMatch::other;
  }
  return out;
}

std::string difference_text(const ModelComparison& comparison) {
  if (!comparison.config.empty()) {
    std::vector<std::string> named = comparison.config;
    const size_t more = named.size() > kMostNamed ? named.size() - kMostNamed : 0;
    named.resize(named.size() - more);
    if (more > 0) named.push_back(count_of(more, "other number"));
    return join(named);
  }
  std::vector<std::string> parts;
  if (!comparison.layers.empty()) parts.push_back(layer_list(comparison.layers));
  if (comparison.embedding) parts.push_back("the embedding");
  if (!parts.empty()) {
    const std::string by = comparison.moved_most.empty()
                               ? ""
                               : cat(", moved by up to ",
                                     fixed(100 * comparison.moved, comparison.moved < 0.1 ? 2 : 0),
                                     " % of their size (", comparison.moved_most, ")");
    const std::string rows =
        comparison.grown_text.empty() ? "" : cat(", with ", comparison.grown_text);
    return cat("the weights of ", join(parts), " are others", by, rows);
  }
  return comparison.rest ? "what comes behind the last K and V (Q, O, MLP, final norm, lm_head)"
                         : "";
}

}  // namespace fp8kv
