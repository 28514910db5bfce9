// The result of a fit as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/model/config.h"
#include "fit/fit_report.h"

namespace fp8kv {

// The model and the runtime of a fit.
struct FitSubject {
  std::string model;       // the folder, as given
  std::string runtime;     // "vLLM 0.33"
  std::string launcher;    // the command before the folder, "vllm serve "; "": unknown
  std::string dtype_flag;  // the value of the runtime's --kv-cache-dtype for the chosen format
  std::string unit;        // the unit of the budget: "B/token", "B/sequence"
  std::string scales;      // the scale file, written or planned; "": none
  // "drops the scales of MLA" if the runtime drops the scales of this model, else "".
  std::string dropped;
  std::string copy_for;  // the value for inject's --for; "": the default
  const ModelConfig& config;
};

// "fp8_e4m3, 16-bit layers 0, 2 and 4".
std::string fit_point_name(const FitReport& report, const FitPoint& point);

// The table of all points, the layers' costs, the choice and how to serve it.
std::string fit_text(const FitReport& report, const FitSubject& subject);

std::string fit_json(const FitReport& report, const FitSubject& subject);

// The choice in sentences.
std::vector<std::string> fit_sentences(const FitReport& report, const FitSubject& subject);

// The commands that serve the choice, in order. Empty without a choice.
std::vector<std::string> fit_commands(const FitReport& report, const FitSubject& subject);

}  // namespace fp8kv
