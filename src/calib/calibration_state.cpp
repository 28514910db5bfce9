#include "calib/calibration_state.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <sstream>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/shell.h"
#include "calib/measure/collected_tensors.h"
#include "files/file.h"
#include "files/output/atomic_file.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr char kSchema[] = "fp8kv.partial/3";
constexpr char kRound[] = "round";  // "FIRST COUNT": the first window, and how many
constexpr char kBefore[] = "before.";
constexpr char kResidual[] = "residual";
constexpr char kSeal[] = "seal";  // hex digits, the last bytes of the file
constexpr uint64_t kSealBytes = 64;
constexpr uint64_t kReadBytes = uint64_t(4) << 20;
// Rows that are read or restored at a time.
constexpr int64_t kRowsWritten = 2048;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string text_of(const Round& round) {
  return cat(round.first, " ", round.count);
}

std::string round_of(const SafetensorsHeader& header) {
  const auto at = header.metadata.find(kRound);
  return at == header.metadata.end() ? "" : at->second;
}

std::string with_help_to_start_over(const fs::path& path) {
  return cat("to start over, remove it: rm ", shell_path(path.string()));
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
    const bool known = key == "schema" || key == kRound ||
                       std::any_of(identity_.parts.begin(), identity_.parts.end(),
                                   [&](const auto& part) { return part.key == key; });
    if (!known) refuse(key, found, "");
  }
}

// Throws unless the seal matches. Runs before anything in the file is trusted.
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

void CalibrationState::fail_tensors() const {
  throw Error(cat(quote(path_.string()), ": does not have the tensors of this calibration"),
              with_help_to_start_over(path_));
}

std::optional<SafetensorsHeader> CalibrationState::open() const {
  std::error_code error;
  if (fs::symlink_status(path_, error).type() == fs::file_type::not_found) return std::nullopt;
  check_seal();
  SafetensorsHeader header = read_safetensors_header(path_);
  check_identity(header);
  return header;
}

std::optional<Round> CalibrationState::find_round(const ModelConfig& config) {
  opened_ = open();
  if (!opened_) return std::nullopt;
  Round round;
  const std::string text = round_of(*opened_);
  std::istringstream words(text);
  if (!(words >> round.first >> round.count) || text_of(round) != text) fail_tensors();
  if (round.first == 0) return round;
  auto before = collected_in(path_, *opened_, config, kBefore);
  if (!before || std::ssize(before->layers) != config.n_layers()) fail_tensors();
  round.before = std::move(*before);
  return round;
}

void CalibrationState::begin_round(Round round) {
  round_ = std::move(round);
  saved_layers_ = 0;
}

std::optional<CollectedMagnitudes> CalibrationState::find(const ModelConfig& config,
                                                          int64_t total_rows, DType activation) {
  const std::optional<SafetensorsHeader> header =
      opened_ ? std::exchange(opened_, std::nullopt) : open();
  if (!header || round_of(*header) != text_of(round_)) return std::nullopt;
  const TensorEntry* residual = find_entry(*header, kResidual);
  auto found = collected_in(path_, *header, config, "");
  const bool fits = found && residual && std::ssize(found->layers) < config.n_layers() &&
                    residual->dtype == activation &&
                    residual->shape == Shape{total_rows, config.stream_dim()};
  if (!fits) fail_tensors();
  residual_ = *residual;
  saved_layers_ = std::ssize(found->layers);
  return found;
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

void CalibrationState::save(const CollectedMagnitudes& layers, const ModelConfig& config,
                            int64_t total_rows, DType activation, ResidualStream& residual) {
  std::vector<StateTensor> collected = tensors_of(layers, config, "");
  if (round_.first > 0) {
    for (StateTensor& each : tensors_of(round_.before, config, kBefore)) {
      collected.push_back(std::move(each));
    }
  }
  std::vector<TensorEntry> tensors;
  uint64_t end = 0;
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape, uint64_t bytes) {
    tensors.push_back({name, dtype, shape, end, end + bytes});
    end += bytes;
  };
  for (const StateTensor& each : collected) {
    add(each.name, each.dtype, each.shape, each.bytes.size());
  }
  const Shape rows{total_rows, config.stream_dim()};
  add(kResidual, activation, rows,
      static_cast<uint64_t>(rows.elements()) * dtype_bytes(activation));
  add(kSeal, DType::u8, {int64_t{kSealBytes}}, kSealBytes);
  std::map<std::string, std::string> metadata = {{"schema", kSchema}, {kRound, text_of(round_)}};
  for (const RunPart& part : identity_.parts) metadata[part.key] = part.value;
  AtomicFile file(path_);
  Sha256 digest;
  const auto write = [&](std::string_view part) {
    digest.add(part);
    file.write(part);
  };
  write(safetensors_head(tensors, metadata));
  for (const StateTensor& each : collected) write(text_of(std::span(each.bytes)));
  residual.read([&](std::span<const std::byte> part) {
    check_interrupt();
    write(text_of(part));
  });
  file.write(digest.hex());
  file.commit();
  saved_layers_ = std::ssize(layers.layers);
}

void CalibrationState::remove() {
  std::error_code ignored;
  if (fs::symlink_status(path_, ignored).type() == fs::file_type::not_found) return;
  // Removes only the state of this run: the header must match.
  check_identity(read_safetensors_header(path_));
  if (::unlink(path_.c_str()) != 0) fail_system(path_.string(), "remove", errno);
}

}  // namespace fp8kv
