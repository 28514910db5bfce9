#include "calib/calibration_state.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "base/digest.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "core/histogram.h"
#include "files/atomic_file.h"
#include "files/file.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr char kSchema[] = "fp8kv.partial/2";
constexpr char kCounted[] = "counted";
constexpr char kHalf[] = "half";
constexpr char kReached[] = "reached";
constexpr char kResidual[] = "residual";
constexpr char kSeal[] = "seal";  // hex digits, the last bytes of the file
constexpr uint64_t kSealBytes = 64;
constexpr uint64_t kReadBytes = uint64_t(4) << 20;
// Read and restored at a time, in rows.
constexpr int64_t kRowsWritten = 2048;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Shape counted_shape(int64_t layers, const ModelConfig& config) {
  return {layers, 3, config.n_kv_heads(), kMagnitudeWords};
}

// [layers, 3, n_kv_heads]: Q, K and V. Layers with fewer heads have zeros at the end, as they have
// in what was counted.
Shape half_shape(int64_t layers, const ModelConfig& config) {
  return {layers, 3, config.n_kv_heads()};
}

int64_t expert_count(const ModelConfig& config) {
  return config.experts ? config.experts->count : 0;
}

std::vector<float> flat(const std::vector<LayerAmax>& layers, const ModelConfig& config) {
  const auto width = static_cast<size_t>(3 * config.n_kv_heads());
  std::vector<float> values;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const auto* heads : {&layers[i].q, &layers[i].k, &layers[i].v}) {
      values.insert(values.end(), heads->begin(), heads->end());
    }
    values.resize((i + 1) * width);
  }
  return values;
}

std::vector<LayerAmax> layers_in(const std::vector<float>& values, const ModelConfig& config) {
  const auto width = static_cast<size_t>(3 * config.n_kv_heads());
  std::vector<LayerAmax> layers(values.size() / width);
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (!config.writes_cache(index)) continue;
    auto at = values.begin() + static_cast<std::ptrdiff_t>(i * width);
    for (auto* heads : {&layers[i].q, &layers[i].k, &layers[i].v}) {
      heads->assign(at, at + config.layer(index).n_kv_heads);
      at += config.layer(index).n_kv_heads;
    }
  }
  return layers;
}

const TensorEntry* find_entry(const SafetensorsHeader& header, const char* name) {
  for (const TensorEntry& entry : header.tensors) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string with_help_to_start_over(const fs::path& path) {
  return cat("to start over, remove it: rm ", quote(path.string()));
}

}  // namespace

fs::path CalibrationState::path_for(const fs::path& out) {
  return out.string() + ".partial";
}

CalibrationState::CalibrationState(fs::path path, RunIdentity identity)
    : path_(std::move(path)), identity_(std::move(identity)) {}

void CalibrationState::check_identity(const SafetensorsHeader& header) const {
  const auto value = [&](const std::string& key) {
    const auto at = header.metadata.find(key);
    return at == header.metadata.end() ? std::string() : at->second;
  };
  const auto refuse = [&](const std::string& what, const std::string& found,
                          const std::string& expected) {
    throw Error(cat(quote(path_.string()), ": is the state of a run with another ", what, " (",
                    quote(found), ", this run has ", quote(expected), ")"),
                with_help_to_start_over(path_));
  };
  if (value("schema") != kSchema) refuse("form of the state", value("schema"), kSchema);
  for (const RunPart& part : identity_.parts) {
    if (value(part.key) != part.value) refuse(part.what, value(part.key), part.value);
  }
  for (const auto& [key, found] : header.metadata) {
    const bool known =
        key == "schema" || std::any_of(identity_.parts.begin(), identity_.parts.end(),
                                       [&](const auto& part) { return part.key == key; });
    if (!known) refuse(key, found, "");
  }
}

// Before anything of it is believed.
void CalibrationState::check_seal() const {
  const InputFile file(path_);
  const uint64_t sealed = std::max<uint64_t>(file.size(), kSealBytes) - kSealBytes;
  Sha256 digest;
  std::vector<std::byte> part;
  for (uint64_t at = 0; at < sealed; at += part.size()) {
    check_interrupt();
    part.resize(static_cast<size_t>(std::min(kReadBytes, sealed - at)));
    file.read(at, part);
    digest.add(text_of(part));
  }
  if (file.size() > kSealBytes && file.read(sealed, kSealBytes) == digest.hex()) return;
  throw Error(cat(quote(path_.string()),
                  ": is damaged, or not the state of a calibration: it does not end with the "
                  "SHA-256 of what is before"),
              cat(with_help_to_start_over(path_), "; to keep it, choose another output"));
}

std::optional<CalibrationState::Progress> CalibrationState::find(const ModelConfig& config,
                                                                 int64_t total_rows,
                                                                 DType activation) {
  std::error_code error;
  if (fs::symlink_status(path_, error).type() == fs::file_type::not_found) return std::nullopt;
  check_seal();
  const SafetensorsHeader header = read_safetensors_header(path_);
  check_identity(header);
  const TensorEntry* counted = find_entry(header, kCounted);
  const TensorEntry* half = find_entry(header, kHalf);
  const TensorEntry* residual = find_entry(header, kResidual);
  const bool whole =
      counted && residual && counted->dtype == DType::u64 && counted->shape.rank() == 4 &&
      counted->shape[0] > 0 && counted->shape[0] < config.n_layers() &&
      counted->shape == counted_shape(counted->shape[0], config) && residual->dtype == activation &&
      residual->shape == Shape{total_rows, config.stream_dim()};
  const bool half_fits = !half || (whole && half->dtype == DType::f32 &&
                                   half->shape == half_shape(counted->shape[0], config));
  const TensorEntry* reached = find_entry(header, kReached);
  const bool reached_fits =
      whole && (reached != nullptr) == config.experts.has_value() &&
      (!reached || (reached->dtype == DType::u64 &&
                    reached->shape == Shape{counted->shape[0], expert_count(config)}));
  if (!whole || !half_fits || !reached_fits) {
    throw Error(cat(quote(path_.string()), ": does not have the tensors of this calibration"),
                with_help_to_start_over(path_));
  }
  Progress progress;
  progress.layers = counted->shape[0];
  progress.counted.resize(static_cast<size_t>(counted->shape.elements()));
  InputFile(path_).read(counted->begin, std::as_writable_bytes(std::span(progress.counted)));
  if (half) {
    std::vector<float> values(static_cast<size_t>(half->shape.elements()));
    InputFile(path_).read(half->begin, std::as_writable_bytes(std::span(values)));
    progress.half = layers_in(values, config);
  }
  if (reached) {
    std::vector<uint64_t> row(static_cast<size_t>(expert_count(config)));
    for (int64_t layer = 0; layer < progress.layers; ++layer) {
      const uint64_t at = static_cast<uint64_t>(layer) * row.size() * sizeof(uint64_t);
      InputFile(path_).read(reached->begin + at, std::as_writable_bytes(std::span(row)));
      progress.reached.push_back(row);
    }
  }
  residual_ = *residual;
  saved_layers_ = progress.layers;
  return progress;
}

void CalibrationState::restore(ResidualStream& residual) const {
  const InputFile file(path_);
  const int64_t rows = residual_.shape[0];
  const auto row_bytes = static_cast<size_t>(residual_.shape[1]) * dtype_bytes(residual_.dtype);
  std::vector<std::byte> part;
  for (int64_t row = 0; row < rows; row += kRowsWritten) {
    check_interrupt();
    part.resize(static_cast<size_t>(std::min(kRowsWritten, rows - row)) * row_bytes);
    file.read(residual_.begin + static_cast<uint64_t>(row) * row_bytes, part);
    residual.fill(row, part);
  }
}

void CalibrationState::save(const Progress& progress, const ModelConfig& config, int64_t total_rows,
                            DType activation, ResidualStream& residual) {
  const auto counted_bytes = static_cast<uint64_t>(progress.counted.size()) * sizeof(uint64_t);
  const std::vector<float> half = flat(progress.half, config);
  std::vector<uint64_t> reached;
  for (const auto& layer : progress.reached) {
    reached.insert(reached.end(), layer.begin(), layer.end());
  }
  const uint64_t reached_end = counted_bytes + reached.size() * sizeof(uint64_t);
  const uint64_t bytes = reached_end + half.size() * sizeof(float);
  const Shape rows{total_rows, config.stream_dim()};
  const uint64_t row_bytes = static_cast<uint64_t>(rows.elements()) * dtype_bytes(activation);
  const uint64_t end = bytes + row_bytes;
  std::vector<TensorEntry> tensors = {
      {kCounted, DType::u64, counted_shape(progress.layers, config), 0, counted_bytes}};
  if (!reached.empty()) {
    tensors.push_back({kReached,
                       DType::u64,
                       {progress.layers, expert_count(config)},
                       counted_bytes,
                       reached_end});
  }
  if (!half.empty()) {
    tensors.push_back({kHalf, DType::f32, half_shape(progress.layers, config), reached_end, bytes});
  }
  tensors.push_back({kResidual, activation, rows, bytes, end});
  tensors.push_back({kSeal, DType::u8, {int64_t{kSealBytes}}, end, end + kSealBytes});
  std::map<std::string, std::string> metadata = {{"schema", kSchema}};
  for (const RunPart& part : identity_.parts) metadata[part.key] = part.value;
  AtomicFile file(path_);
  Sha256 digest;
  const auto write = [&](std::string_view part) {
    digest.add(part);
    file.write(part);
  };
  write(safetensors_head(tensors, metadata));
  write(text_of(std::as_bytes(std::span(progress.counted))));
  write(text_of(std::as_bytes(std::span(reached))));
  write(text_of(std::as_bytes(std::span(half))));
  residual.read([&](std::span<const std::byte> part) {
    check_interrupt();
    write(text_of(part));
  });
  file.write(digest.hex());
  file.commit();
  saved_layers_ = progress.layers;
}

void CalibrationState::remove() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace fp8kv
