#include "report/positions_words.h"

#include <cstdint>

#include "base/text.h"

namespace fp8kv {
namespace {

// A rotation keeps the length of a pair of elements. So the larger element is at most sqrt(2) times
// its size at another angle. The factor of yarn and longrope is the same at every position.
constexpr const char* kReach =
    "the same keys turned otherwise reach up to 1.41 times the amax of K (--headroom 2)";

// The longrope factor sets that were measured.
struct Measured {
  bool short_factors = false;
  bool long_factors = false;
};

Measured measured(const PositionsNote& note) {
  return {note.longest_windows.front() <= note.original,
          note.longest_windows.back() > note.original};
}

const char* how_measured(const PositionsNote& note) {
  if (note.rope_type == "yarn") return "its factor multiplies K at every position";
  if (note.rope_type == "dynamic") return "K with the base of the context";
  const Measured by = measured(note);
  if (by.short_factors && by.long_factors) return "K with the short factors and with the long ones";
  return by.short_factors ? "K with the short factors alone" : "K with the long factors alone";
}

}  // namespace

std::string unmeasured_positions(const PositionsNote& note) {
  if (note.rope_type == "yarn") {
    const uint64_t longest = note.longest_windows.back();
    return longest < note.limit ? cat("positions from ", longest, " on") : "";
  }
  if (note.rope_type == "dynamic") return cat("prompts beyond ", note.limit, " tokens");
  if (note.rope_type != "longrope") return "";
  const Measured by = measured(note);
  if (!by.long_factors) return cat("prompts beyond ", note.original, " tokens");
  return by.short_factors ? "" : cat("prompts of up to ", note.original, " tokens");
}

std::vector<std::string> positions_lines(const PositionsNote& note) {
  if (note.rope_type.empty()) return {};
  std::vector<std::string> lengths;
  for (const uint64_t tokens : note.longest_windows) lengths.push_back(cat(tokens));
  std::vector<std::string> lines = {cat(note.rope_type, ", windows of up to ", join(lengths),
                                        " tokens of ", note.limit, ": ", how_measured(note))};
  const std::string left = unmeasured_positions(note);
  if (left.empty()) return lines;
  lines.push_back(cat(left, " were not measured: ", kReach));
  if (note.rope_type != "longrope") return lines;
  const char* than = measured(note).long_factors ? "" : "above ";
  lines.push_back(cat("to measure them, calibrate other text with --seq-len ", than, note.original,
                      ", and merge the two"));
  return lines;
}

}  // namespace fp8kv
