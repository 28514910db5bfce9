#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "support/skip.h"

int main(int argc, char** argv) {
  const int failed = doctest::Context(argc, argv).run();
  fp8kv::test::print_skipped(failed != 0);
  return failed;
}
