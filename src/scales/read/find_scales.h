// The KV scales that a checkpoint or a file carries, whatever tool wrote them: which tensors they
// are, in which dialect, with which values, and what is remarkable about them.
// Reads headers, configs and the scale tensors; never the weights.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "core/scales.h"
#include "scales/diagnose.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

struct FoundScales {
  std::string dialect;  // the name of its row; joined by " and " where there are two
  // Without layers where there is a refusal. FNUZ when kv_cache_torch_dtype says so, else E4M3FN.
  KvScales scales;
  std::vector<ScaleTensor> tensors;    // by name
  std::vector<IgnoredTensor> ignored;  // what stands beside them, and what is in no known form
  std::string kv_cache_torch_dtype;    // of config.json; "" when absent
  std::vector<std::string> notes;      // what was there and not used, with the reason
  std::vector<Diagnosis> diagnoses;
  std::optional<Error> refusal;  // why these scales cannot be used
  bool absent = false;           // there is nothing that looks like a scale
};

// Which row a tensor is of follows from its name and from the config; where either alone leaves a
// choice, or the two contradict each other, that is a refusal. So are: no scales at all, a layer
// missing or too many, K without V, values no runtime can use, names of a form that is not read,
// scales of another type than FP8, and two forms of one scale, unless kv_scale is the maximum of
// k_scale and v_scale, bit for bit or as rounded to the coarser dtype.
FoundScales survey_scales(const Checkpoint& checkpoint);
// The same for anything that may carry scales: a Hugging Face folder, a TensorRT-LLM folder
// (rank0.safetensors, ...), an AMMO folder (*_rank0.npz, ...), a scale file. Throws where there is
// nothing to tell: what is not there, or cannot be read at all.
FoundScales survey_scales(const std::filesystem::path& path);

// Whether a folder is of the other kinds, which carry scales but no model to run.
bool is_scale_folder(const std::filesystem::path& folder);

// The scales alone, the refusal thrown. find_scales: nullopt when there are none at all.
std::optional<FoundScales> find_scales(const Checkpoint& checkpoint);
FoundScales scales_at(const Checkpoint& checkpoint);
FoundScales scales_at(const std::filesystem::path& path);

}  // namespace fp8kv
