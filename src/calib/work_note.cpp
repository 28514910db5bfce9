#include "calib/work_note.h"

#include <algorithm>
#include <span>

#include "base/duration.h"
#include "base/text.h"
#include "calib/windows/memory_plan.h"
#include "calib/windows/window_plan.h"
#include "calib/work_estimate.h"

namespace fp8kv {
namespace {

constexpr double kShort_s = 5;
// Any machine multiplies this often in less than kShort_s, so nothing is measured below it.
constexpr double kLittle = 1e10;

}  // namespace

std::optional<std::string> work_note(const ModelConfig& config, Backend& backend,
                                     const Windows& windows, size_t least) {
  const double work = multiply_adds(config, windows.ids);
  if (work < kLittle) return std::nullopt;
  const double speed = measured_speed(backend, config);
  const double seconds = work / speed;
  if (seconds < kShort_s) return std::nullopt;
  const size_t count = windows.ids.size();
  std::string time = duration(seconds), taken = count_of(count, "window");
  if (least < count) {
    const auto tokens = static_cast<double>(tokens_in(std::span(windows.ids).first(least)));
    time = cat(duration(seconds * tokens / static_cast<double>(windows.tokens)), " to ", time);
    taken = cat(least, " to ", taken);
  }
  const int64_t n_layers = config.layers_to_last_cache();
  return cat(
      "about ", time, " for ", taken, ", ", least < count ? "up to " : "",
      count_of(windows.tokens, "token"), ", through ",
      count_of(static_cast<uint64_t>(n_layers), "layer"), " (products of the model's width run at ",
      grouped(static_cast<uint64_t>(2e-9 * speed)), " GFLOP/s), and ",
      human_bytes(memory_beside_weights(config, backend, plan_windows(windows.ids), n_layers)),
      " of memory beside the weights");
}

}  // namespace fp8kv
