// Paths that the build chose. Only places.cpp knows them: a source with such paths would have to be
// compiled again for each build folder.
#pragma once

#include <filesystem>
#include <string>

namespace fp8kv::test {

// The source folder of the tests. If the build was carried to another machine, the working folder.
std::filesystem::path source_dir();

// The program of the same build.
std::filesystem::path built_program();

// The library that makes a file operation fail when preloaded into the program. "" in builds with
// sanitizers, because their own runtime must be loaded first.
std::string fault_shim();

}  // namespace fp8kv::test
