// Finds the KV scales of a checkpoint or file, whatever tool wrote them: their tensors, dialect,
// values and diagnoses.
// Reads headers, configs and the scale tensors; never the weights.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "scales/read/found_scales.h"

namespace fp8kv {

// A tensor's row follows from its name and the config. The result carries a refusal if the two
// contradict each other or leave a choice. It also carries one for:
// - no scales at all, a missing layer, an extra layer, or K without V;
// - values that no runtime can use, unknown forms of names, and scales of a type other than FP8;
// - two forms of one scale, unless kv_scale is the maximum of k_scale and v_scale: bit for bit, or
//   rounded to the coarser dtype.
// Scales of a layer that writes no KV cache are ignored.
FoundScales survey_scales(const Checkpoint& checkpoint);
// Surveys any source of scales: a Hugging Face folder, a TensorRT-LLM folder (rank0.safetensors,
// ...), an AMMO folder (*_rank0.npz, ...) or a scale file. Throws if the path is missing or
// unreadable.
FoundScales survey_scales(const std::filesystem::path& path);

// The parts of shards that hold the scales of K, V, Q and inputs whose values are read by a survey
// of this folder, or by `verify`. For a remote model, these are all that must be fetched. Reads
// only configs and headers.
std::vector<FilePart> scale_parts(const std::filesystem::path& folder);

// The scales alone; throws the refusal. find_scales returns nullopt if there are none at all.
std::optional<FoundScales> find_scales(const Checkpoint& checkpoint);
FoundScales scales_at(const Checkpoint& checkpoint);
FoundScales scales_at(const std::filesystem::path& path);

}  // namespace fp8kv
