#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <vector>

#include "base/terminal_text.h"
#include "base/utf8.h"

namespace fp8kv {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::vector<int> version_parts(const std::string& version) {
  std::vector<int> parts;
  const char* at = version.data();
  const char* end = at + version.size();
  while (at < end) {
    int part = 0;
    const auto parsed = std::from_chars(at, end, part);
    if (parsed.ec != std::errc() || part < 0) break;
    parts.push_back(part);
    if (parsed.ptr == end || *parsed.ptr != '.') break;
    at = parsed.ptr + 1;
  }
  return parts;
}

}  // namespace

void MessagePart::append_to(std::string& out) const {
  char digits[64];
  const auto append_number = [&](auto number) {
    const auto written = std::to_chars(digits, digits + sizeof digits, number);
    out.append(digits, written.ptr);
  };
  switch (kind_) {
    case Kind::text:
      out.append(text_.data, text_.size);
      return;
    case Kind::letter:
      out += letter_;
      return;
    case Kind::truth:
      out += truth_ ? "true" : "false";
      return;
    case Kind::integer:
      append_number(integer_);
      return;
    case Kind::natural:
      append_number(natural_);
      return;
    case Kind::single:
      append_number(single_);
      return;
    case Kind::twice:
      append_number(double_);
      return;
  }
}

std::string joined_parts(std::initializer_list<MessagePart> parts) {
  std::string out;
  for (const MessagePart& part : parts) part.append_to(out);
  return out;
}

std::string quote(std::string_view name) {
  constexpr size_t kLongest = 200;
  std::string out = "'";
  for (size_t i = 0; i < name.size();) {
    if (out.size() > kLongest) {
      out += "...";
      break;
    }
    const auto [length, shows] = visible_front(name.substr(i));
    if (!shows) {
      for (const size_t end = i + length; i < end; ++i) {
        char escaped[5];
        std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(name[i]));
        out += escaped;
      }
    } else if (name[i] == '\'' || name[i] == '\\') {
      out += '\\';
      out += name[i++];
    } else {
      out += name.substr(i, length);
      i += length;
    }
  }
  return out + "'";
}

std::string plain(std::string_view name) {
  const std::string quoted = quote(name);
  return quoted.substr(1, quoted.size() - 2);
}

std::string utf8_name(std::string_view name) {
  return is_utf8(name) ? std::string(name) : plain(name);
}

std::string join(std::span<const std::string> items, std::string_view last) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += i + 1 == items.size() ? last : std::string_view(", ");
    out += items[i];
  }
  return out;
}

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > name.size() + best_distance) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string best = nearest(name, candidates);
  return best.empty() ? "" : cat(" (did you mean ", quote(best), "?)");
}

std::string human_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // From 1023.95 on the number would print as 1024.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return cat(unit == 0 ? cat(bytes) : fixed(value, value < 9.995 ? 2 : 1), " ", kUnits[unit]);
}

std::string grouped(uint64_t number) {
  std::string digits = cat(number);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string count_of(uint64_t number, std::string_view noun) {
  return cat(grouped(number), " ", noun, number == 1 ? "" : "s");
}

std::string fixed(double value, int decimals) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return buffer;
}

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g %%", 100 * share);
  return text;
}

bool is_utf8(std::string_view bytes, size_t* bad_at) {
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = utf8_length(bytes.substr(i, 4));
    if (length == 0) {
      if (bad_at) *bad_at = i;
      return false;
    }
    i += length;
  }
  return true;
}

bool version_before(const std::string& version, const std::string& bound) {
  const std::vector<int> parts = version_parts(version);
  return !parts.empty() && parts < version_parts(bound);
}

}  // namespace fp8kv
