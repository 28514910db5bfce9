// Models at addresses, for the commands that read no weights: what they need is read, and the
// folder of it takes the address's place in the options.
#pragma once

#include <filesystem>
#include <map>

#include "options/options.h"
#include "remote/remote_model.h"

namespace fp8kv {

// Models that were read, for as long as the command runs.
using ReadModels = std::map<std::filesystem::path, RemoteModel>;

// Does nothing unless an option is an address. Throws a usage Error, with the way out, for commands
// that need weights.
ReadModels read_addresses(Options& options);

}  // namespace fp8kv
