#include "base/error_text.h"

#include "base/terminal_text.h"

namespace fp8kv {

std::string error_text(const std::string& prefix, const Error& error) {
  std::string text = terminal_line(prefix + error.what()) + "\n";
  if (!error.help().empty()) text += terminal_line("help: " + error.help()) + "\n";
  return text;
}

}  // namespace fp8kv
