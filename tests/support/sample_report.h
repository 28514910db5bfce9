// Invented evaluations for pages and plots: plain ones, and odd ones that real runs may produce.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/scales/scales.h"
#include "eval/eval_report.h"

namespace fp8kv::test {

struct SampleShape {
  int64_t layers = 2;
  int64_t heads = 2;
  int64_t candidates = 3;  // amax, unit, and more of amax
  int64_t depths = 3;
  std::string name;  // appended to every text from outside
};

// Fills in every field with a different number.
EvalReport sample_report(const SampleShape& shape);

// A report of six layers, with nothing appended to its texts.
inline EvalReport plain_report() {
  return sample_report({.layers = 6, .name = ""});
}

// A report where layers 0 and 2 of 4 have no cache and no figures.
EvalReport sample_hybrid();

// Magnitudes of one value, `amax`, in every head.
LayerMagnitudes sample_magnitudes(float k, float v, int64_t heads);

// Reports with file names: plain, one layer, many layers, without calibration, dead layers, NaN and
// infinity, layers without a cache, and hostile names.
std::vector<std::pair<std::string, EvalReport>> sample_reports();

// Scales that a calibration would make from such magnitudes.
KvScales sample_scales(const SampleShape& shape);

// Scale files of the same kinds. Also scales of one shard with layers without a cache, and of a
// model whose rotation depends on the length of the prompt.
std::vector<std::pair<std::string, KvScales>> sample_scale_files();

// A name with markup, control characters, invalid UTF-8 and characters that change the direction of
// text.
std::string hostile_name();

// All pages of evaluations, of scales and of tasks.
std::vector<std::pair<std::string, std::string>> sample_pages();

}  // namespace fp8kv::test
