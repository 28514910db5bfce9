#include "scales/identity_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "base/error.h"

namespace fp8kv {
namespace {

std::vector<std::string> texts_of(const Json& array) {
  if (!array.is_array()) fail(array.where(), ": is ", array.brief(), ", expected an array");
  std::vector<std::string> texts;
  for (size_t i = 0; i < array.size(); ++i) texts.push_back(array[i].as_string());
  return texts;
}

// "0.0213/0.0541 ": both sizes of each tensor. Four digits are enough to see a factor of 2.
std::string sizes_text(const std::vector<RowSizes>& sizes) {
  std::string text;
  for (const RowSizes& size : sizes) {
    std::array<char, 64> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.4g/%.4g", size.all, size.largest);
    if (!text.empty()) text += ' ';
    text += buffer.data();
  }
  return text;
}

double read_size(std::string_view text, const Json& at) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 &&
      std::isfinite(value)) {
    return value;
  }
  throw Error(
      cat(at.where(), ": ", quote(text), " is no size of rows, expected a number from 0 on"),
      "the file was edited: calibrate again");
}

std::vector<RowSizes> read_sizes(const Json& json) {
  const std::string whole = json.as_string();
  std::vector<RowSizes> sizes;
  for (std::string_view text = whole; !text.empty();) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const size_t slash = std::min(word.find('/'), word.size());
    sizes.push_back({.all = read_size(word.substr(0, slash), json),
                     .largest = read_size(word.substr(std::min(slash + 1, word.size())), json),
                     .name = {}});
  }
  return sizes;
}

void read_rows(const Json& object, size_t n_layers, ModelIdentity& identity) {
  const auto digests = object.find("row_digests"), sizes = object.find("row_sizes");
  if (!digests && !sizes) return;
  if (!digests || !sizes) {
    fail(object.where(), ": has one of 'row_digests' and 'row_sizes', expected both");
  }
  const std::vector<std::string> texts = texts_of(*digests);
  if (!sizes->is_array() || sizes->size() != n_layers || texts.size() != n_layers) {
    fail(object.where(), ": 'row_digests' and 'row_sizes' are not of ", n_layers, " layers each");
  }
  for (size_t i = 0; i < n_layers; ++i)
    identity.rows.push_back({texts[i], read_sizes((*sizes)[i])});
}

}  // namespace

void write_identity(JsonWriter& out, const ModelIdentity& identity) {
  out.begin_object().member("projections", identity.projections).key("config").begin_object();
  for (const ConfigNumber& number : identity.config) out.member(number.key, number.value);
  out.end_object().key("embedding").begin_object();
  out.member("digest", identity.embedding.digest).member("samples", identity.embedding.samples);
  out.end_object();
  std::vector<std::string> digests, samples;
  for (const WeightsIdentity& layer : identity.layers) {
    digests.push_back(layer.digest);
    samples.push_back(layer.samples);
  }
  out.member("layers", std::span<const std::string>(digests));
  out.member("samples", std::span<const std::string>(samples));
  if (!identity.rows.empty()) {
    std::vector<std::string> row_digests, row_sizes;
    for (const RowsIdentity& rows : identity.rows) {
      row_digests.push_back(rows.digest);
      row_sizes.push_back(sizes_text(rows.sizes));
    }
    out.member("row_digests", std::span<const std::string>(row_digests));
    out.member("row_sizes", std::span<const std::string>(row_sizes));
  }
  out.member("rest", identity.rest).end_object();
}

ModelIdentity read_identity(const Json& object, const std::string& fingerprint) {
  ModelIdentity identity;
  identity.projections = object.get_string("projections", "");
  const Json config = object.at("config");
  if (!config.is_object()) {
    fail(config.where(), ": is ", config.brief(), ", expected an object");
  }
  for (size_t i = 0; i < config.size(); ++i) {
    identity.config.push_back({config.key(i), config.value(i).as_string()});
  }
  const Json embedding = object.at("embedding");
  identity.embedding = {embedding.at("digest").as_string(), embedding.at("samples").as_string()};
  const std::vector<std::string> digests = texts_of(object.at("layers"));
  const std::vector<std::string> samples = texts_of(object.at("samples"));
  if (samples.size() != digests.size()) {
    fail(object.where(), ": has samples of ", count_of(samples.size(), "layer"), ", expected ",
         digests.size());
  }
  for (size_t i = 0; i < digests.size(); ++i) identity.layers.push_back({digests[i], samples[i]});
  read_rows(object, digests.size(), identity);
  identity.rest = object.at("rest").as_string();
  if (fingerprint_of(identity) == fingerprint) return identity;
  throw Error(cat(object.where(), ": does not give the fingerprint beside it"),
              "the file was edited: calibrate again");
}

}  // namespace fp8kv
