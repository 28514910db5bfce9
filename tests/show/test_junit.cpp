#include <doctest/doctest.h>

#include "show/junit.h"

using namespace fp8kv;

TEST_CASE("junit: a case that passed and one that failed, with names escaped") {
  const JunitCase cases[] = {{"fp8_e4m3 amax", "ppl_delta > 0.5%", std::nullopt},
                             {"fp8_e4m3 unit", "top1 < 0.5", "top1 is \x01 & \"low\""}};
  CHECK(junit_text("fp8kv eval models/<a>&\"b\"", cases) ==
        R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1">
  <testsuite name="fp8kv eval models/&lt;a&gt;&amp;&quot;b&quot;" tests="2" failures="1">
    <testcase classname="fp8_e4m3 amax" name="ppl_delta &gt; 0.5%"/>
    <testcase classname="fp8_e4m3 unit" name="top1 &lt; 0.5">
      <failure message="top1 is ? &amp; &quot;low&quot;"/>
    </testcase>
  </testsuite>
</testsuites>
)");
}
