#include "scales/loaded/load_with_python.h"

#include <csignal>
#include <cstring>
#include <deque>
#include <span>
#include <sstream>

#include "base/error.h"
#include "files/child_process.h"
#include "json/json.h"
#include "scales/loaded/load_scales_script.h"

namespace fp8kv {
namespace {

constexpr size_t kLinesShown = 8;

// A JSON text is also a Python literal of the same strings and numbers.
std::string script_for(const LoadRequest& request) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object()
      .member("folder", std::filesystem::absolute(request.folder).string())
      .member("runtime", request.runtime)
      .member("kv_cache_dtype", request.kv_cache_dtype)
      .member("tensors", std::span<const std::string>(request.tensors))
      .member("answer", kAnswerDescriptor)
      .end_object();
  return cat("REQUEST = ", json.text(), "\n", load_scales_script());
}

void say_last_lines(const std::string& said, Log& log) {
  std::deque<std::string> lines;
  std::istringstream text(said);
  for (std::string line; std::getline(text, line);) {
    line = one_line(line);
    if (line.empty()) continue;
    lines.push_back(line);
    if (lines.size() > kLinesShown) lines.pop_front();
  }
  for (const std::string& line : lines) log.note("  " + line);
}

[[noreturn]] void throw_ended(const ChildResult& result, const LoadRequest& request) {
  const std::string folder = quote(request.folder.string());
  if (result.timed_out) {
    throw Error(cat("has not loaded ", folder, " within ", request.time_limit_s, " seconds"),
                "give it longer with --timeout", ErrorKind::resource);
  }
  if (result.signal_number == SIGKILL) {
    throw Error(cat("was killed while it loaded ", folder, ", as happens where memory runs out"),
                "free memory, or run it on a larger machine", ErrorKind::resource);
  }
  const std::string how = result.signal_number != 0 ? strsignal(result.signal_number)
                                                    : cat("exit code ", result.exit_code);
  throw Error(cat("ended without an answer (", how, ")"),
              "it has to be a Python, of the environment that serves the model");
}

}  // namespace

LoadedScales load_with_python(const LoadRequest& request, Log& log) {
  log.note(cat(quote(request.python), " loads ", quote(request.folder.string()), ": ",
               request.time_limit_s, " seconds at most"));
  // -u: what it said is there when it is killed. -B: no compiled modules are written.
  const ChildResult result =
      run_child({{request.python, "-u", "-B", "-"}, script_for(request), request.time_limit_s});
  return with_context(quote(request.python), [&] {
    if (result.timed_out || result.answer.empty()) {
      say_last_lines(result.said, log);
      throw_ended(result, request);
    }
    return parse_loaded_scales(result.answer);
  });
}

}  // namespace fp8kv
