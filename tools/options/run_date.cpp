#include "options/run_date.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace fp8kv {
namespace {

constexpr int64_t kLastSecond = 253402300799;  // the last second of the year 9999

}  // namespace

int64_t run_seconds() {
  const char* given = std::getenv("SOURCE_DATE_EPOCH");
  if (given == nullptr) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
  }
  const std::string_view text = given;
  int64_t seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && seconds >= 0 && seconds <= kLastSecond) return seconds;
  throw Error(cat("SOURCE_DATE_EPOCH is ", quote(text), ", expected seconds since 1970"),
              "set it to a whole number such as 1735689600, or unset it", ErrorKind::usage);
}

std::string run_date() {
  const std::chrono::sys_seconds now{std::chrono::seconds(run_seconds())};
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(now)};
  const auto two = [](unsigned number) { return cat(number < 10 ? "0" : "", number); };
  return cat(static_cast<int>(day.year()), "-", two(static_cast<unsigned>(day.month())), "-",
             two(static_cast<unsigned>(day.day())));
}

}  // namespace fp8kv
