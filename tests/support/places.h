// Where the build has put things. Only places.cpp knows: a source that held these paths could not
// be compiled once for several build folders.
#pragma once

#include <filesystem>
#include <string>

namespace fp8kv::test {

// Where the tests were built; of a build that was carried to another machine, the working folder.
std::filesystem::path source_dir();

// The program that was built beside the tests.
std::filesystem::path built_program();

// The library that, preloaded into the program, fails one of its file operations; "" in builds with
// sanitizers, whose own runtime must be loaded first.
std::string fault_shim();

}  // namespace fp8kv::test
