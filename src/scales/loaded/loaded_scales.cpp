#include "scales/loaded/loaded_scales.h"

#include "base/error.h"
#include "json/json.h"

namespace fp8kv {
namespace {

std::vector<float> numbers(const Json& module, std::string_view name) {
  std::vector<float> values;
  const auto list = module.find(name);
  for (size_t i = 0; list && i < list->size(); ++i) {
    values.push_back(static_cast<float>((*list)[i].as_double()));
  }
  return values;
}

std::vector<std::string> titles(const Json& answer) {
  std::vector<std::string> names;
  const auto found = answer.find("found");
  for (size_t i = 0; found && i < found->size(); ++i) {
    names.push_back(runtime_title((*found)[i].as_string()));
  }
  return names;
}

[[noreturn]] void throw_refusal(const std::string& kind, const Json& answer) {
  if (kind == "memory") {
    throw Error("ran out of memory while the runtime loaded the folder",
                "free memory, or run it on a larger machine", ErrorKind::resource);
  }
  const std::vector<std::string> names = titles(answer);
  if (kind == "several") {
    throw Error(cat("has ", join(names)), "choose with --runtime, as in --runtime vllm",
                ErrorKind::usage);
  }
  const std::string wanted = answer.get_string("wanted", "");
  if (!wanted.empty()) {
    throw Error(cat("has no ", runtime_title(wanted), names.empty() ? "" : ", but ", join(names)),
                "give --with the Python of the environment that it is installed in");
  }
  throw Error("has none of vLLM, SGLang and transformers",
              "give --with the Python of the environment that serves the model");
}

}  // namespace

std::string one_line(std::string_view text) {
  constexpr size_t kMostBytes = 300;
  std::string line;
  for (const char c : text) {
    const bool shows = c >= ' ' && c != 0x7f;  // keeps ASCII only: multi-byte characters may be cut
    if (!shows && (line.empty() || line.back() == ' ')) continue;
    line += shows ? c : ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return line.size() <= kMostBytes ? line : line.substr(0, kMostBytes) + "...";
}

std::string runtime_title(std::string_view runtime) {
  if (runtime == "vllm") return "vLLM";
  if (runtime == "sglang") return "SGLang";
  return std::string(runtime);
}

LoadedScales parse_loaded_scales(std::string_view text) {
  const Json answer = Json::parse(text, "its answer", JsonNumbers::python);
  if (const auto refused = answer.find("refused")) throw_refusal(refused->as_string(), answer);
  LoadedScales loaded;
  loaded.runtime = answer.at("runtime").as_string();
  loaded.version = answer.at("version").as_string();
  loaded.python_version = answer.at("python").as_string();
  if (const auto turns_on = answer.find("turns_on")) loaded.turns_on = turns_on->as_bool();
  loaded.cache = answer.get_string("cache", "");
  loaded.failure = one_line(answer.get_string("failure", ""));
  const auto modules = answer.find("modules");
  for (size_t i = 0; modules && i < modules->size(); ++i) {
    const Json module = (*modules)[i];
    loaded.modules.push_back({module.at("module").as_string(), module.at("layer").as_int(),
                              numbers(module, "k"), numbers(module, "v"), numbers(module, "q")});
  }
  return loaded;
}

}  // namespace fp8kv
