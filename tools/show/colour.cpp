#include "show/colour.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "base/terminal_text.h"
#include "show/output.h"

namespace fp8kv {
namespace {

// Codes of "select graphic rendition" (ECMA-48), which every terminal with colours understands.
constexpr const char* kGreen = "32";
constexpr const char* kYellow = "33";
constexpr const char* kRed = "31";
constexpr const char* kMagenta = "35";
constexpr const char* kCyan = "36";

struct Piece {
  std::string_view text;
  const char* code;
};

// If one piece begins with another, the longer one comes first.
constexpr Piece kPieces[] = {
    {"1.0 is safe", kGreen},
    {"would have done", kGreen},
    {"needs its scale", kYellow},
    {"need their scales", kYellow},
    {"would not have done", kYellow},
    {"keep in 16 bit", kRed},
    {"should stay in 16 bit", kRed},
    {"lose values", kRed},
    {"are lost", kRed},
    {"cannot be judged", kMagenta},
    {"not known", kMagenta},
    {"too little text", kMagenta},
    {"│", kYellow},
    {"█", kCyan},
    {"▇", kCyan},
    {"▆", kCyan},
    {"▅", kCyan},
    {"▄", kCyan},
    {"▃", kCyan},
    {"▂", kCyan},
    {"▁", kCyan},
    {"▉", kCyan},
    {"▊", kCyan},
    {"▋", kCyan},
    {"▌", kCyan},
    {"▍", kCyan},
    {"▎", kCyan},
    {"▏", kCyan},
};

const Piece* piece_at(std::string_view text) {
  const auto* const found =
      std::find_if(std::begin(kPieces), std::end(kPieces),
                   [&](const Piece& piece) { return text.starts_with(piece.text); });
  return found == std::end(kPieces) ? nullptr : found;
}

}  // namespace

std::string coloured(std::string_view text) {
  std::string out;
  const char* now = nullptr;  // the active colour
  const auto change = [&](const char* to) {
    if (to == now) return;
    if (now != nullptr) out += "\x1b[0m";
    if (to != nullptr) out += std::string("\x1b[") + to + "m";
    now = to;
  };
  while (!text.empty()) {
    const Piece* const piece = piece_at(text);
    change(piece == nullptr ? nullptr : piece->code);
    const size_t length = piece == nullptr ? 1 : piece->text.size();
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  change(nullptr);
  return out;
}

bool wants_colour() {
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  if (terminal == nullptr || *terminal == '\0' || std::string_view(terminal) == "dumb") {
    return false;
  }
  return isatty(STDOUT_FILENO) == 1;
}

void show(std::string_view text) {
  const std::string cleaned = terminal_text(text);
  print(wants_colour() ? coloured(cleaned) : cleaned);
}

}  // namespace fp8kv
