#include "inputs/addresses.h"

#include <type_traits>

#include "base/error.h"
#include "base/shell.h"
#include "remote/read_parts.h"
#include "remote/read_tokenizer.h"
#include "remote/remote_address.h"
#include "scales/read/find_scales.h"

namespace fp8kv {
namespace {

constexpr const char* kAnother =
    "extract, inspect, verify, plan, diff and tokenize need no weights, so they read models at "
    "addresses";

// The advice: the command line that fetches the whole model, if there is one.
std::string fetch_line(const RemoteAddress& address) {
  if (!address.hub) return "fetch the folder first, and name it here";
  const std::string& revision = address.hub->revision;
  return cat("fetch it first: hf download ", shell_word(address.hub->repo),
             revision == "main" ? "" : cat(" --revision ", shell_word(revision)),
             " --local-dir FOLDER");
}

void refuse(const std::filesystem::path& path, const char* why, const std::string& also = "") {
  if (!is_remote(path)) return;
  const RemoteAddress address = parse_remote_address(path);
  throw Error(cat(quote(path.string()), ": ", why, ", which are not read from an address"),
              cat(fetch_line(address), "; ", also.empty() ? kAnother : also), ErrorKind::usage);
}

class AddressReader {
 public:
  AddressReader(ReadModels& models, Verbosity verbosity, bool use_cache)
      : models_(models), log_(verbosity), use_cache_(use_cache) {}

  void read(std::filesystem::path& path) { read(path, parts_reader(scale_parts)); }

  void read(std::filesystem::path& path, const RemoteReader& reader) {
    if (!is_remote(path)) return;
    auto found = models_.find(path);
    if (found == models_.end()) {
      RemoteModel model = RemoteModel::read(parse_remote_address(path), reader, use_cache_, log_);
      found = models_.emplace(path, std::move(model)).first;
    }
    path = found->second.folder();
  }

 private:
  ReadModels& models_;
  Log log_;
  bool use_cache_;
};

// Reads the addresses of commands that take them. Other commands take an address only for --scales,
// and refuse it for a model.
template <typename T>
void read_in(T& options, ReadModels& models) {
  if constexpr (requires { options.no_cache; }) {
    AddressReader reader(models, options.verbosity, !options.no_cache);
    if constexpr (std::is_same_v<T, TokenizeOptions>) {
      return reader.read(options.model, tokenizer_reader());
    }
    if constexpr (requires { options.with; }) {
      if (!options.with.empty()) refuse(options.path, "--with runs the weights");
    }
    if constexpr (requires { options.model; }) reader.read(options.model);
    if constexpr (requires { options.path; }) reader.read(options.path);
    if constexpr (requires { options.source; }) reader.read(options.source);
    if constexpr (requires { options.a; }) {
      reader.read(options.a);
      reader.read(options.b);
    }
    return;
  }
  if constexpr (std::is_same_v<T, InjectCommandOptions>) {
    refuse(options.model, "inject copies the weights",
           "or write the scales alone, which need none: fp8kv extract");
  } else if constexpr (requires { options.model; }) {
    refuse(options.model, "this command computes with the weights");
  }
  if constexpr (requires { options.against; }) {
    refuse(options.against, "this command computes with the weights");
  }
  if constexpr (requires { options.scales; }) {
    AddressReader(models, options.verbosity, true).read(options.scales);
  }
}

}  // namespace

ReadModels read_addresses(Options& options) {
  ReadModels models;
  std::visit([&](auto& each) { read_in(each, models); }, options);
  return models;
}

}  // namespace fp8kv
