// Evaluations that nobody ran, for pages and plots: plain ones, and the odd ones that real runs can
// come to.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/scales.h"
#include "eval/eval_report.h"

namespace fp8kv::test {

struct SampleShape {
  int64_t layers = 2;
  int64_t heads = 2;
  int64_t candidates = 3;  // amax, unit, and more of amax
  int64_t depths = 3;
  std::string name;  // put into every text that comes from outside
};

// Every field filled in, with numbers that differ from place to place.
EvalReport sample_report(const SampleShape& shape);

// Layers 0 and 2 of 4 have no cache, and nothing is measured there.
EvalReport sample_hybrid();

// Magnitudes of one value each: `amax` in every head.
LayerMagnitudes sample_magnitudes(float k, float v, int64_t heads);

// File names and what is on them: plain, one layer, many, without calibration, dead layers, numbers
// that are none, layers without a cache, and hostile names.
std::vector<std::pair<std::string, EvalReport>> sample_reports();

// Scales as a calibration would make them of such magnitudes.
KvScales sample_scales(const SampleShape& shape);

// The same kinds of scales, and some of a part of the text, with layers without a cache, and of a
// model whose rotation changes with the length of a prompt.
std::vector<std::pair<std::string, KvScales>> sample_scale_files();

// All pages of evaluations and of scales.
std::vector<std::pair<std::string, std::string>> sample_pages();

}  // namespace fp8kv::test
