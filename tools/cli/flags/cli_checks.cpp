#include "cli/flags/cli_checks.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "core/cache/cache_type.h"
#include "data/shard.h"
#include "options/byte_size.h"
#include "options/kv_dtype.h"
#include "policy/policies.h"

namespace fp8kv {
namespace {

// The smallest size without a unit: a smaller number was meant in another unit.
constexpr uint64_t kLeastWithoutUnit = uint64_t{1} << 20;

template <typename T>
std::optional<T> parse(const std::string& given) {
  T value{};
  const char* end = given.data() + given.size();
  const auto parsed = std::from_chars(given.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// A validator without a description, so that help shows only the option's type name.
CLI::Validator check_with(std::function<std::string(std::string&)> check) {
  return CLI::Validator(std::move(check), "");
}

// Accepts the values that `read` does not throw for.
template <typename T>
CLI::Validator check_by(T (*read)(const std::string&)) {
  return check_with([read](std::string& given) -> std::string {
    try {
      read(given);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  });
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> allowed) {
  return check_with([allowed](std::string& given) -> std::string {
    const auto same = [&](const std::string& word) { return lower(word) == lower(given); };
    const auto found = std::find_if(allowed.begin(), allowed.end(), same);
    if (found != allowed.end()) {
      given = *found;
      return "";
    }
    return cat(quote(given), " is not one of: ", join(allowed, ", "), did_you_mean(given, allowed));
  });
}

CLI::Validator whole_number(uint64_t least, uint64_t most) {
  return check_with([least, most](std::string& given) -> std::string {
    const bool is_digits =
        !given.empty() && given.find_first_not_of("0123456789") == std::string::npos;
    const auto value = parse<uint64_t>(given);
    if (is_digits && !value) return cat(quote(given), " is more than ", most);
    if (!value || *value < least) {
      return cat(quote(given), " is not a ", least == 0 ? "" : "positive ", "whole number");
    }
    if (*value > most) return cat(quote(given), " is more than ", most);
    given = cat(*value);  // the library would take a leading 0 for octal
    return "";
  });
}

CLI::Validator a_count_or_auto() {
  return check_with([](std::string& given) -> std::string {
    if (lower(given) == "auto") {
      given = "auto";
      return "";
    }
    const std::string error = whole_number(1)(given);
    return error.ends_with("whole number") ? error + ", nor auto" : error;
  });
}

CLI::Validator number_between(double least, double most) {
  return check_with([least, most](std::string& given) -> std::string {
    const auto value = parse<double>(given);
    if (value && *value >= least && *value <= most) return "";
    return cat(quote(given), " is not a number from ", least, " to ", most);
  });
}

CLI::Validator number_above(double least, double most) {
  return check_with([least, most](std::string& given) -> std::string {
    const auto value = parse<double>(given);
    if (value && *value > least && *value <= most) return "";
    return cat(quote(given), " is not a number above ", least, " and at most ", most);
  });
}

CLI::Validator a_path() {
  return check_with(
      [](std::string& given) -> std::string { return given.empty() ? "'' is no path" : ""; });
}

CLI::Validator a_prompt() {
  return check_with([](std::string& given) -> std::string {
    std::error_code ignored;
    if (given.empty()) return "'' is no prompt";
    if (given == "-" || !std::filesystem::is_regular_file(given, ignored)) return "";
    return cat(quote(given),
               " is a file: prompts of a file go after --prompts, this text after --prompt");
  });
}

CLI::Validator a_stop() {
  return check_with([](std::string& given) -> std::string {
    size_t bad = 0;
    if (!is_utf8(given, &bad)) return cat("is not valid UTF-8 at byte ", bad);
    return given.empty() ? "'' is everywhere: no answer would have a text" : "";
  });
}

CLI::Validator a_shard() {
  return check_with([](std::string& given) -> std::string {
    if (shard_from_text(given)) return "";
    return cat(quote(given), " is not I/N with I less than N, such as 0/4 to 3/4");
  });
}

CLI::Validator a_byte_size() {
  return check_with([](std::string& given) -> std::string {
    const auto bytes = bytes_from_text(given);
    const bool has_unit = given.find_first_not_of("0123456789.") != given.npos;
    if (bytes && !has_unit && *bytes < kLeastWithoutUnit) {
      const char* unit = *bytes < 1024 ? "GiB" : "MiB";
      return cat(quote(given), " has no unit: did you mean '", given, unit, "'?");
    }
    if (bytes) return "";
    return cat(quote(given), " is not a size, such as ", kByteSizeForms);
  });
}

CLI::Validator a_policy() {
  return check_by(parse_policy);
}

CLI::Validator a_kv_dtype() {
  return check_by(kv_dtype_from_name);
}

CLI::Validator a_plan_dtype() {
  return check_by(plan_dtype_name);
}

CLI::Validator a_dtype_with_scales() {
  return check_with([](std::string& given) -> std::string {
    const std::vector<std::string> known = kv_dtype_names();
    if (given == "auto" || std::find(known.begin(), known.end(), given) == known.end()) return "";
    const std::optional<CacheType> type = kv_dtype_from_name(given);
    if (!type || scales_for(*type)) return "";
    const bool plain = kv_elements(*type).has_value();
    return cat(given, plain ? " needs no scales" : " makes its own scales",
               ", so there is nothing to calibrate; 'fp8kv eval' measures this cache");
  });
}

}  // namespace fp8kv
