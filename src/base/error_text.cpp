#include "base/error_text.h"

#include <unistd.h>

#include "base/terminal_text.h"
#include "base/wrapped_text.h"

namespace fp8kv {

std::string error_text(const std::string& prefix, const Error& error) {
  const std::string what = terminal_line(prefix + error.what());
  std::string text = sentence_text(what, terminal_width(STDERR_FILENO), 2) + "\n";
  // The help stays on one line, because people copy commands from it.
  if (!error.help().empty()) text += terminal_line("help: " + error.help()) + "\n";
  return text;
}

}  // namespace fp8kv
