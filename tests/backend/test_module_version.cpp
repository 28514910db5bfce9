#include <array>
#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "backend/module_version.h"
#include "base/text.h"

using namespace fp8kv;

TEST_CASE("module_version: the version, and a digest of the interface") {
  const std::string version = module_version(), begin = FP8KV_VERSION ", interface ";
  REQUIRE(version.starts_with(begin));
  const std::string digest = version.substr(begin.size());
  CHECK(digest.size() == 12);
  CHECK(digest.find_first_not_of("0123456789abcdef") == digest.npos);
}

TEST_CASE("module_version: a module of the same version and another interface refuses") {
  std::array<char, 256> reason{};
  CHECK(fits_program(module_version(), reason.data(), reason.size()));
  CHECK(std::strlen(reason.data()) == 0);
  for (const char* program : {FP8KV_VERSION, FP8KV_VERSION ", interface 000000000000", ""}) {
    CHECK_FALSE(fits_program(program, reason.data(), reason.size()));
    CHECK(reason.data() == cat("the module is of fp8kv ", module_version(), ", the program is ",
                               program, "\ninstall both from one build"));
  }
  std::array<char, 8> small{};  // cut, and still a text
  CHECK_FALSE(fits_program("1", small.data(), small.size()));
  CHECK(std::string(small.data()) == "the mod");
}
