// Models at addresses, for commands that read no weights. Reads what the command needs into a
// folder, which replaces the address in the options.
#pragma once

#include <filesystem>
#include <map>

#include "options/options.h"
#include "remote/remote_model.h"

namespace fp8kv {

// The models that were read. They must live as long as the command runs.
using ReadModels = std::map<std::filesystem::path, RemoteModel>;

// Replaces every address in the options by a folder. Throws a usage Error with advice for a command
// that needs weights.
ReadModels read_addresses(Options& options);

}  // namespace fp8kv
