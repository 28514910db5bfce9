#include "scales/scale_evidence.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"

namespace fp8kv {
namespace {

// The most values of one tensor in one octave: far above any calibration, and sums do not overflow.
constexpr uint64_t kMostInOctave = uint64_t{1} << 48;

uint64_t as_count(const Json& value) {
  const int64_t count = value.as_int();
  if (count < 0) fail(value.where(), ": is ", count, ", expected 0 or more");
  return static_cast<uint64_t>(count);
}

void write_amax(JsonWriter& out, const std::vector<LayerAmax>& layers) {
  write_rows(out, "k", layers, &LayerAmax::k);
  write_rows(out, "v", layers, &LayerAmax::v);
  write_rows(out, "q", layers, &LayerAmax::q);
}

bool has_q_octaves(const Provenance& provenance) {
  return std::any_of(
      provenance.octaves.begin(), provenance.octaves.end(),
      [](const LayerOctaves& layer) { return layer.q.zeros > 0 || !layer.q.counts.empty(); });
}

void write_octaves(JsonWriter& out, const char* name, const Provenance& provenance,
                   OctaveCounts LayerOctaves::*part) {
  out.key(name).begin_array();
  for (size_t layer = 0; layer < provenance.octaves.size(); ++layer) {
    const OctaveCounts& octaves = provenance.octaves[layer].*part;
    std::vector<int64_t> row;
    if (!provenance.amax[layer].k.empty()) {
      row = {static_cast<int64_t>(octaves.zeros), octaves.first};
      row.insert(row.end(), octaves.counts.begin(), octaves.counts.end());
    }
    out.value(std::span<const int64_t>(row));
  }
  out.end_array();
}

std::vector<LayerAmax> read_amax(const Json& amax, const RowShape& given) {
  const RowShape shape = with_row_length(given, amax.at("k"));
  auto k = read_rows(amax.at("k"), shape);
  auto v = read_rows(amax.at("v"), shape);
  auto q = read_rows(amax.at("q"), shape);
  std::vector<LayerAmax> layers;
  for (size_t layer = 0; layer < k.size(); ++layer) {
    for (const auto* row : {&k[layer], &v[layer], &q[layer]}) {
      if (std::all_of(row->begin(), row->end(),
                      [](float a) { return std::isfinite(a) && a >= 0; })) {
        continue;
      }
      fail(amax.where(), ": layer ", layer, ": a maximum is negative or infinite");
    }
    layers.push_back({std::move(k[layer]), std::move(v[layer]), std::move(q[layer])});
  }
  return layers;
}

// The first layer in which the amax of a part exceeds that of the whole.
std::optional<size_t> layer_beyond(const std::vector<LayerAmax>& part,
                                   const std::vector<LayerAmax>& whole) {
  const auto within = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>());
  };
  for (size_t layer = 0; layer < whole.size(); ++layer) {
    const LayerAmax &a = part[layer], &b = whole[layer];
    if (!within(a.k, b.k) || !within(a.v, b.v) || !within(a.q, b.q)) return layer;
  }
  return std::nullopt;
}

// Reads the parts from the largest on: older versions wrote "half" alone. Each part must lie within
// the next larger one that is there.
void read_parts(const Json& extension, const RowShape& shape, Provenance& out) {
  const std::vector<LayerAmax>* whole = &out.amax;
  std::string name = "the layer's amax";
  for (size_t i = kTextParts; i-- > 0;) {
    const auto part = extension.find(kTextPartNames[i]);
    if (!part) continue;
    out.parts[i] = {count_at(*part, "tokens"), read_amax(*part, shape)};
    if (const auto layer = layer_beyond(out.parts[i].layers, *whole)) {
      throw Error(cat(part->where(), ": layer ", *layer, ": is above ", name),
                  "one of the two was edited: calibrate again");
    }
    whole = &out.parts[i].layers;
    name = cat("that of ", quote(kTextPartNames[i]));
  }
}

// Reads a row "[zeros, exponent, counts...]".
OctaveCounts read_octave_row(const Json& row) {
  if (!row.is_array() || row.size() < 2) {
    fail(row.where(), ": is ", row.brief(), ", expected [zeros, exponent, counts...]");
  }
  OctaveCounts octaves;
  octaves.zeros = as_count(row[0]);
  const int64_t first = row[1].as_int();
  const auto octaves_held = static_cast<int64_t>(row.size()) - 2;
  const bool empty = octaves_held == 0 && first == 0;
  if (!empty &&
      (octaves_held == 0 || first < kFirstOctave || octaves_held > kLastOctave + 1 - first)) {
    fail(row.where(), ": has ", count_of(row.size() - 2, "octave"), " from 2^", first,
         ", expected octaves within 2^", kFirstOctave, " to 2^", kLastOctave + 1);
  }
  octaves.first = static_cast<int>(first);
  for (size_t i = 2; i < row.size(); ++i) {
    octaves.counts.push_back(as_count(row[i]));
    if (octaves.counts.back() > kMostInOctave) {
      fail(row[i].where(), ": is ", row[i].brief(), ", more values than can have been counted");
    }
  }
  if (!octaves.counts.empty() && (octaves.counts.front() == 0 || octaves.counts.back() == 0)) {
    fail(row.where(), ": begins or ends with an empty octave");
  }
  return octaves;
}

void check_octaves(const Json& row, const OctaveCounts& octaves, const std::vector<float>& amax) {
  const float most = largest(amax);
  if (octaves.counts.empty() && most < 0x1p-39f) return;
  const int top = octaves.first + static_cast<int>(octaves.counts.size()) - 1;
  if (!octaves.counts.empty() && most >= 0x1p-39f && octave_of(most) == top) return;
  const std::string found = octaves.counts.empty() ? "nothing" : cat("values below 2^", top + 1);
  throw Error(cat(row.where(), ": counts ", found, ", but the layer's amax is ", most),
              "one of the two was edited: calibrate again");
}

// Throws unless the row is []: the layer has no KV cache.
void check_empty(const Json& row) {
  if (row.is_array() && row.size() == 0) return;
  fail(row.where(), ": is ", row.brief(), ", expected [], as the layer has no KV cache");
}

void read_octaves(const Json& octaves, const RowShape& shape, Provenance& out) {
  const auto read = [&](const char* name, OctaveCounts LayerOctaves::*part,
                        std::vector<float> LayerAmax::*amax) {
    const Json rows = octaves.at(name);
    if (!rows.is_array() || rows.size() != out.amax.size()) {
      fail(rows.where(), ": is ", rows.brief(), ", expected an array of ",
           count_of(out.amax.size(), "layer"));
    }
    for (size_t layer = 0; layer < rows.size(); ++layer) {
      if (!shape.has_cache[layer]) {
        check_empty(rows[layer]);
        continue;
      }
      out.octaves[layer].*part = read_octave_row(rows[layer]);
      check_octaves(rows[layer], out.octaves[layer].*part, out.amax[layer].*amax);
    }
  };
  out.octaves.resize(out.amax.size());
  read("k", &LayerOctaves::k, &LayerAmax::k);
  read("v", &LayerOctaves::v, &LayerAmax::v);
  if (octaves.has("q")) read("q", &LayerOctaves::q, &LayerAmax::q);
}

// Reads nothing if a later version wrote an unknown rope_type.
void read_positions(const Json& positions, Provenance& out) {
  const std::string rope_type = positions.at("rope_type").as_string();
  if (rope_type != "yarn" && rope_type != "longrope" && rope_type != "dynamic") return;
  PositionsNote& note = out.positions;
  note.rope_type = rope_type;
  note.original = count_at(positions, "original");
  note.limit = count_at(positions, "limit");
  const Json longest = positions.at("longest_windows");
  for (size_t i = 0; i < longest.size(); ++i) {
    const uint64_t tokens = as_count(longest[i]);
    if (i > 0 && tokens <= note.longest_windows.back()) {
      fail(longest.where(), ": is ", longest.brief(), ", expected rising numbers");
    }
    note.longest_windows.push_back(tokens);
  }
  if (note.longest_windows.empty()) {
    fail(longest.where(), ": is ", longest.brief(), ", expected one number or more");
  }
}

// Reads a list of names, whatever a writer calls a template.
void read_templates(const Json& templates, Provenance& out) {
  if (!templates.is_array()) {
    fail(templates.where(), ": is ", templates.brief(), ", expected a list of names");
  }
  for (size_t i = 0; i < templates.size(); ++i) {
    out.chat_templates.push_back(templates[i].as_string());
  }
  std::sort(out.chat_templates.begin(), out.chat_templates.end());
}

void read_shards(const Json& shards, Provenance& out) {
  ShardNote& note = out.shards;
  note.of = count_at(shards, "of");
  const Json taken = shards.at("taken");
  for (size_t i = 0; i < taken.size(); ++i) {
    const uint64_t index = as_count(taken[i]);
    if (index >= note.of || (i > 0 && index <= note.taken.back())) {
      fail(taken.where(), ": is ", taken.brief(), ", expected rising numbers below ", note.of);
    }
    note.taken.push_back(index);
  }
  if (note.taken.empty() || note.taken.size() == note.of) {
    fail(taken.where(), ": is ", taken.brief(), ", expected some but not all of ",
         count_of(note.of, "shard"));
  }
  note.documents = count_at(shards, "documents");
  note.windows = count_at(shards, "windows");
  note.tokens = count_at(shards, "tokens");
}

}  // namespace

uint64_t count_at(const Json& object, std::string_view key) {
  return as_count(object.at(key));
}

RowShape with_row_length(RowShape shape, const Json& rows) {
  const size_t n_layers = rows.is_array() ? std::min(rows.size(), shape.has_cache.size()) : 0;
  for (size_t layer = 0; layer < n_layers && shape.per_row == 0; ++layer) {
    if (shape.has_cache[layer]) shape.per_row = std::max<size_t>(rows[layer].size(), 1);
  }
  return shape;
}

std::vector<std::vector<float>> read_rows(const Json& rows, const RowShape& shape) {
  const size_t n_layers = shape.has_cache.size();
  if (!rows.is_array() || rows.size() != n_layers) {
    fail(rows.where(), ": is ", rows.brief(), ", expected an array of ",
         count_of(n_layers, "layer"));
  }
  std::vector<std::vector<float>> out;
  for (size_t layer = 0; layer < n_layers; ++layer) {
    const Json row = rows[layer];
    out.emplace_back();
    if (!shape.has_cache[layer]) {
      check_empty(row);
      continue;
    }
    const size_t length = shape.of_layers.empty() ? shape.per_row : shape.of_layers[layer];
    if (!row.is_array() || row.size() != length) {
      fail(row.where(), ": is ", row.brief(), ", expected an array of ",
           count_of(length, "number"));
    }
    for (size_t i = 0; i < length; ++i) {
      out.back().push_back(static_cast<float>(row[i].as_double()));
    }
  }
  return out;
}

void write_counted(JsonWriter& out, const Provenance& provenance) {
  if (provenance.windows == 0 && provenance.data.empty()) return;
  out.key("counted").begin_object();
  out.member("documents", provenance.documents);
  out.member("windows", provenance.windows);
  out.member("tokens", provenance.tokens);
  out.key("data").begin_array();
  for (const DataFile& file : provenance.data) {
    out.begin_object();
    out.member("name", file.name).member("bytes", file.bytes).member("sha256", file.sha256);
    out.end_object();
  }
  out.end_array();
  if (!provenance.chat_templates.empty()) {
    out.member("chat_templates", std::span(provenance.chat_templates));
  }
  if (const ShardNote& shards = provenance.shards; shards.of > 0) {
    out.key("shards").begin_object().member("of", shards.of);
    const std::vector<int64_t> taken(shards.taken.begin(), shards.taken.end());
    out.member("taken", std::span<const int64_t>(taken)).member("documents", shards.documents);
    out.member("windows", shards.windows).member("tokens", shards.tokens).end_object();
  }
  if (const PositionsNote& positions = provenance.positions; !positions.rope_type.empty()) {
    out.key("positions").begin_object().member("rope_type", positions.rope_type);
    out.member("original", positions.original).member("limit", positions.limit);
    const std::vector<int64_t> longest(positions.longest_windows.begin(),
                                       positions.longest_windows.end());
    out.member("longest_windows", std::span<const int64_t>(longest)).end_object();
  }
  out.end_object();
}

void write_magnitudes(JsonWriter& out, const Provenance& provenance) {
  if (provenance.amax.empty()) return;
  out.key("amax").begin_object();
  write_amax(out, provenance.amax);
  out.end_object();
  for (size_t i = 0; i < kTextParts; ++i) {
    const AmaxAfter& part = provenance.parts[i];
    if (part.tokens == 0) continue;
    out.key(kTextPartNames[i]).begin_object().member("tokens", part.tokens);
    write_amax(out, part.layers);
    out.end_object();
  }
  if (provenance.octaves.empty()) return;
  FP8KV_ASSERT(provenance.octaves.size() == provenance.amax.size());
  out.key("octaves").begin_object();
  write_octaves(out, "k", provenance, &LayerOctaves::k);
  write_octaves(out, "v", provenance, &LayerOctaves::v);
  if (has_q_octaves(provenance)) write_octaves(out, "q", provenance, &LayerOctaves::q);
  out.end_object();
}

void read_counted(const Json& counted, Provenance& out) {
  out.documents = count_at(counted, "documents");
  out.windows = count_at(counted, "windows");
  out.tokens = count_at(counted, "tokens");
  const Json data = counted.at("data");
  if (!data.is_array()) fail(data.where(), ": is ", data.brief(), ", expected an array");
  for (size_t i = 0; i < data.size(); ++i) {
    const Json file = data[i];
    out.data.push_back(
        {file.at("name").as_string(), count_at(file, "bytes"), file.at("sha256").as_string()});
  }
  if (const auto templates = counted.find("chat_templates")) read_templates(*templates, out);
  if (const auto shards = counted.find("shards")) read_shards(*shards, out);
  if (const auto positions = counted.find("positions")) read_positions(*positions, out);
}

void read_magnitudes(const Json& extension, const RowShape& shape, Provenance& out) {
  const auto amax = extension.find("amax");
  if (!amax) return;
  out.amax = read_amax(*amax, shape);
  read_parts(extension, shape, out);
  if (const auto octaves = extension.find("octaves")) read_octaves(*octaves, shape, out);
}

}  // namespace fp8kv
