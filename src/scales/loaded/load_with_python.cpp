#include "scales/loaded/load_with_python.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <span>
#include <sstream>
#include <string_view>
#include <unistd.h>

#include "base/error.h"
#include "files/child_process.h"
#include "json/json.h"
#include "scales/loaded/load_scales_script.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLinesShown = 8;

// The environment variables that Python gets. Others could name code to run or change a loader:
// PYTHONSTARTUP, LD_PRELOAD, VLLM_PLUGINS.
constexpr std::string_view kVariables[] = {
    "CONDA_PREFIX", "CUDA_HOME",   "CUDA_PATH",     "HF_HOME",  "HF_HUB_CACHE",
    "HOME",         "LANG",        "LC_ALL",        "LC_CTYPE", "LD_LIBRARY_PATH",
    "LOGNAME",      "PATH",        "ROCM_PATH",     "TMPDIR",   "TZ",
    "USER",         "VIRTUAL_ENV", "XDG_CACHE_HOME"};

std::vector<std::string> environment_for_python() {
  std::vector<std::string> environment = {"PYTHONDONTWRITEBYTECODE=1", "PYTHONSAFEPATH=1"};
  for (const std::string_view name : kVariables) {
    if (const char* value = std::getenv(std::string(name).c_str())) {
      environment.push_back(cat(name, "=", value));
    }
  }
  return environment;
}

// The entries of PYTHONPATH, passed explicitly because isolated mode ignores that variable. Leaves
// out relative entries, the working folder and anything inside the model's folder.
std::vector<std::string> python_path(const fs::path& model) {
  std::vector<std::string> entries;
  const char* value = std::getenv("PYTHONPATH");
  std::istringstream text(value == nullptr ? "" : value);
  const fs::path real_model = fs::weakly_canonical(model);
  for (std::string entry; std::getline(text, entry, ':');) {
    if (!fs::path(entry).is_absolute()) continue;
    const fs::path real = fs::weakly_canonical(entry);
    const bool in_model =
        std::mismatch(real_model.begin(), real_model.end(), real.begin(), real.end()).first ==
        real_model.end();
    if (!in_model && real != fs::current_path()) entries.push_back(entry);
  }
  return entries;
}

// An empty working folder, so that Python and its child processes find nothing to import there.
class EmptyFolder {
 public:
  EmptyFolder() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    std::string name = (error ? fs::path("/tmp") : parent) / "fp8kv-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) fail_system(name, "create folder", errno);
    path_ = name;
  }
  // rmdir only removes the folder that mkdtemp made, and only while it is empty.
  ~EmptyFolder() { ::rmdir(path_.c_str()); }
  EmptyFolder(const EmptyFolder&) = delete;
  EmptyFolder& operator=(const EmptyFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// A JSON text is also a Python literal with the same strings and numbers.
std::string script_for(const LoadRequest& request) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object()
      .member("folder", std::filesystem::absolute(request.folder).string())
      .member("runtime", request.runtime)
      .member("kv_cache_dtype", request.kv_cache_dtype)
      .member("tensors", std::span<const std::string>(request.tensors))
      .member("python_path", std::span<const std::string>(python_path(request.folder)))
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
  const EmptyFolder empty;
  // The child runs in the empty folder, so a path must be absolute.
  const bool is_path = request.python.find('/') != std::string::npos;
  const std::string python = is_path ? fs::absolute(request.python).string() : request.python;
  // -I: isolated, imports nothing from the working folder and reads no PYTHON variable. -u:
  // unbuffered, so its output survives a kill. -B: writes no compiled modules.
  const ChildResult result = run_child({.words = {python, "-I", "-u", "-B", "-"},
                                        .input = script_for(request),
                                        .time_limit_s = request.time_limit_s,
                                        .folder = empty.path(),
                                        .environment = environment_for_python()});
  return with_context(quote(request.python), [&] {
    if (result.timed_out || result.answer.empty()) {
      say_last_lines(result.said, log);
      throw_ended(result, request);
    }
    return parse_loaded_scales(result.answer);
  });
}

}  // namespace fp8kv
