// The KV scales that a checkpoint or a file carries, whatever tool wrote them: which tensors they
// are, in which dialect, with which values, and what is remarkable about them.
// Reads headers, configs and the scale tensors; never the weights.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "scales/read/found_scales.h"

namespace fp8kv {

// Which row a tensor is of follows from its name and from the config; where either alone leaves a
// choice, or the two contradict each other, that is a refusal. So are: no scales at all, a layer
// with a cache missing or a layer too many, K without V, values no runtime can use, names of a form
// that is not read, scales of another type than FP8, and two forms of one scale, unless kv_scale is
// the maximum of k_scale and v_scale, bit for bit or as rounded to the coarser dtype. Scales of a
// layer that writes no KV cache are ignored.
FoundScales survey_scales(const Checkpoint& checkpoint);
// The same for anything that may carry scales: a Hugging Face folder, a TensorRT-LLM folder
// (rank0.safetensors, ...), an AMMO folder (*_rank0.npz, ...), a scale file. Throws where there is
// nothing to tell: what is not there, or cannot be read at all.
FoundScales survey_scales(const std::filesystem::path& path);

// The scales of K, V, Q and inputs whose values a survey of this checkpoint or `verify` reads: all
// that has to be fetched of a model elsewhere.
std::vector<std::string> scale_tensor_names(const Checkpoint& checkpoint);

// The scales alone, the refusal thrown. find_scales: nullopt when there are none at all.
std::optional<FoundScales> find_scales(const Checkpoint& checkpoint);
FoundScales scales_at(const Checkpoint& checkpoint);
FoundScales scales_at(const std::filesystem::path& path);

}  // namespace fp8kv
