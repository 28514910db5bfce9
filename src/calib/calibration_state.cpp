#include "calib/calibration_state.h"

#include <charconv>
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

constexpr char kSchema[] = "fp8kv.partial/1";
constexpr char kCounted[] = "counted";
constexpr char kResidual[] = "residual";
// Read and restored at a time, in rows.
constexpr int64_t kRowsWritten = 2048;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Shape counted_shape(int64_t layers, const ModelConfig& config) {
  return {layers, 3, config.n_kv_heads(), kMagnitudeWords};
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

std::string windows_digest(const std::vector<std::vector<int32_t>>& windows) {
  Sha256 digest;
  for (const std::vector<int32_t>& window : windows) {
    const uint64_t length = window.size();
    digest.add({reinterpret_cast<const char*>(&length), sizeof length});
    digest.add(text_of(std::as_bytes(std::span(window))));
  }
  return digest.hex();
}

std::string device_identity(const std::string& description) {
  return description.substr(0, description.rfind(", "));
}

fs::path CalibrationState::path_for(const fs::path& out) {
  return out.string() + ".partial";
}

CalibrationState::CalibrationState(fs::path path, RunIdentity identity)
    : path_(std::move(path)), identity_(std::move(identity)) {}

void CalibrationState::check_identity(const SafetensorsHeader& header) const {
  const auto value = [&](const char* key) {
    const auto at = header.metadata.find(key);
    return at == header.metadata.end() ? std::string() : at->second;
  };
  if (value("schema") != kSchema) {
    throw Error(cat(quote(path_.string()), ": is not the state of a calibration"),
                "choose another output");
  }
  const auto check = [&](const char* key, const char* what, const std::string& expected) {
    if (value(key) == expected) return;
    throw Error(cat(quote(path_.string()), ": is the state of a run with another ", what, " (",
                    quote(value(key)), ", this run has ", quote(expected), ")"),
                with_help_to_start_over(path_));
  };
  check("tool_version", "version of fp8kv", identity_.tool_version);
  check("model", "model", identity_.model);
  check("windows", "text: other data, or other windows or shards of it", identity_.windows);
  check("device", "device", identity_.device);
}

std::optional<CalibrationState::Progress> CalibrationState::find(const ModelConfig& config,
                                                                 int64_t total_rows,
                                                                 DType activation) {
  std::error_code error;
  if (fs::symlink_status(path_, error).type() == fs::file_type::not_found) return std::nullopt;
  const SafetensorsHeader header = read_safetensors_header(path_);
  check_identity(header);
  const TensorEntry* counted = find_entry(header, kCounted);
  const TensorEntry* residual = find_entry(header, kResidual);
  const bool whole =
      counted && residual && counted->dtype == DType::u64 && counted->shape.rank() == 4 &&
      counted->shape[0] > 0 && counted->shape[0] < config.n_layers() &&
      counted->shape == counted_shape(counted->shape[0], config) && residual->dtype == activation &&
      residual->shape == Shape{total_rows, config.dim};
  if (!whole) {
    throw Error(cat(quote(path_.string()), ": does not have the tensors of this calibration"),
                with_help_to_start_over(path_));
  }
  Progress progress;
  progress.layers = counted->shape[0];
  progress.counted.resize(static_cast<size_t>(counted->shape.elements()));
  InputFile(path_).read(counted->begin, std::as_writable_bytes(std::span(progress.counted)));
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
  const auto bytes = static_cast<uint64_t>(progress.counted.size()) * sizeof(uint64_t);
  const Shape rows{total_rows, config.dim};
  const uint64_t row_bytes = static_cast<uint64_t>(rows.elements()) * dtype_bytes(activation);
  const std::vector<TensorEntry> tensors = {
      {kCounted, DType::u64, counted_shape(progress.layers, config), 0, bytes},
      {kResidual, activation, rows, bytes, bytes + row_bytes}};
  AtomicFile file(path_);
  file.write(safetensors_head(tensors, {{"schema", kSchema},
                                        {"tool_version", identity_.tool_version},
                                        {"model", identity_.model},
                                        {"windows", identity_.windows},
                                        {"device", identity_.device}}));
  file.write(text_of(std::as_bytes(std::span(progress.counted))));
  residual.read([&](std::span<const std::byte> part) {
    check_interrupt();
    file.write(text_of(part));
  });
  file.commit();
  saved_layers_ = progress.layers;
}

void CalibrationState::remove() {
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(AtomicFile::temporary_of(path_), ignored);
}

}  // namespace fp8kv
