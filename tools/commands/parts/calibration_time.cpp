#include "commands/parts/calibration_time.h"

#include <algorithm>

#include "backend/open/open.h"
#include "base/machine/cpu_topology.h"
#include "calib/work_estimate.h"
#include "checkpoint/model/read_model_config.h"
#include "options/options.h"

namespace fp8kv {

CalibrationTime calibration_time(const Checkpoint& checkpoint) {
  const ModelConfig config = read_model_config(checkpoint);
  const WindowRequest request = CalibrateOptions{}.windows;
  int64_t length = request.seq_len;
  if (config.max_seq_len > 0) length = std::min(length, config.max_seq_len);
  const std::vector<int32_t> window(static_cast<size_t>(length));
  const double work = static_cast<double>(request.samples) * multiply_adds(config, {window});
  const auto time_on = [&](const char* device, int threads) {
    const OpenedBackend opened = open_backend(device, threads);
    return MachineTime{opened.backend->describe(), work / measured_speed(*opened.backend, config)};
  };
  CalibrationTime time{request.samples, length, {time_on("auto", 0)}};
  if (usable_cores() > 1) time.machines.push_back(time_on("cpu", 1));
  return time;
}

}  // namespace fp8kv
