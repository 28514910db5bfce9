// Checkpoints with one file per rank, and the checks that all files are there.
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/files/partial_folder.h"
#include "files/output/write_file.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "scales/read/stores/open_store.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) {
  return test::source_dir() / "tests/golden/dialects" / name;
}

// A copy of a golden folder that tests change.
struct Folder {
  explicit Folder(const std::string& name) { fs::copy(golden(name), temp / "m"); }
  fs::path path() const { return temp / "m"; }
  void put(const std::string& from, const std::string& to) const {
    fs::copy_file(golden(from), path() / to, fs::copy_options::overwrite_existing);
  }
  void rename(const std::string& from, const std::string& to) const {
    fs::rename(path() / from, path() / to);
  }
  // The error and its help, without the folder's name.
  std::string error() const {
    try {
      scales_at(path());
    } catch (const Error& error) {
      const std::string shown = quote(path().string());
      std::string text = cat(error.what(), " | ", error.help());
      for (size_t at = 0; (at = text.find(shown)) != text.npos;)
        text.replace(at, shown.size(), "M");
      return text;
    }
    return "";
  }

  test::TempDir temp;
};

TEST_CASE("ranks: a scale that one rank lacks is refused") {
  const Folder folder("f8-tp2");
  folder.put("f8-k-and-v/rank0.safetensors", "rank1.safetensors");
  CHECK(folder.error() ==
        "M: 'transformer.layers.0.attention.k_cache_scaling_factor': is missing from "
        "rank0.safetensors, but another rank has it | copy the whole folder");
}

TEST_CASE("ranks: a scale that was not fetched is an error, never zeros") {
  const Folder folder("f8-tp1");
  const uint64_t bytes = fs::file_size(folder.path() / "rank0.safetensors");
  PartialRecord record{"hf://org/m@c", {}};
  record.files["rank0.safetensors"] = {bytes, "", {{0, 8}}};
  write_new_file(folder.path() / kPartialRecord, partial_record_text(record));
  CHECK(folder.error() ==
        "M: 'hf://org/m@c': the tensor 'transformer.layers.0.attention.kv_cache_scaling_factor' of "
        "'rank0.safetensors' was not read from there: only headers and KV scales were | "
        "fetch the folder, and name it here");
}

TEST_CASE("ranks: the same bytes in another shape or type are not the same") {
  const float value = 0.5f;
  const auto rank = [&](DType dtype, const Shape& shape) {
    std::vector<TensorToWrite> tensors;
    for (int layer = 0; layer < 3; ++layer) {
      tensors.push_back(
          {cat("transformer.layers.", layer, ".attention.kv_cache_scaling_factor"),
           ConstTensorView(reinterpret_cast<const std::byte*>(&value), dtype, shape)});
    }
    return safetensors_bytes(tensors, {});
  };
  const Folder folder("f8-tp2");
  for (const auto& [name, bytes] : {std::pair("rank0.safetensors", rank(DType::f32, {1})),
                                    std::pair("rank1.safetensors", rank(DType::f16, {2}))}) {
    std::ofstream(folder.path() / name, std::ios::binary) << bytes;
  }
  CHECK(folder.error() ==
        "M: 'transformer.layers.0.attention.kv_cache_scaling_factor' is 0.5 in rank0.safetensors "
        "and F16 [2] in rank1.safetensors, expected the same in every rank | scales of one "
        "tensor-parallel split serve no other: calibrate again");
}

TEST_CASE("ranks: names of npz arrays have exactly one number, and one pipeline stage") {
  const Folder names("f8-npz-stored");
  const fs::path npz = names.path() / "llama_tp1_rank0.npz";
  std::string bytes = test::read_file(npz);
  for (size_t at = 0; (at = bytes.find(":1:attention:kv", at)) != bytes.npos;) {
    bytes.replace(at, 12, ":1:att:2:ion");
  }
  std::ofstream(npz, std::ios::binary) << bytes;
  CHECK(names.error() ==
        "M: '_np:layers:1:att:2:ion:kv_cache_scaling_factor' looks like a KV "
        "scale, but is in a form that is not read | 'fp8kv extract --help' lists "
        "the forms that are; calibrate the original model again, or rename the "
        "tensors");
  const Folder stages("f8-npz-stored");
  const fs::path model = stages.path() / "llama_tp1.json";
  const std::string text = json_with_member(test::read_file(model), "pipeline_parallel", "2");
  std::ofstream(model, std::ios::binary) << text;
  CHECK(stages.error().ends_with(
      "llama_tp1.json': pipeline_parallel: is 2, expected 1 | layers are numbered anew "
      "in each pipeline rank: export with one"));
}

TEST_CASE("ranks: files beyond the config's ranks do not count") {
  const Folder folder("f8-tp1");
  folder.put("f8-ranks-disagree/rank1.safetensors", "rank1.safetensors");
  CHECK(folder.error() == "");
}

TEST_CASE("ranks: npz files are of one checkpoint, which a JSON file describes") {
  const Folder twice("f8-npz-tp2");
  twice.put("f8-npz-stored/llama_tp1_rank0.npz", "llama_tp1_rank0.npz");
  CHECK(twice.error() ==
        "M: 'llama_tp1_rank0.npz' and 'llama_tp2_rank0.npz' are both of rank 0 | "
        "keep the files of one checkpoint in a folder");
  const Folder missing("f8-npz-tp2");
  missing.rename("llama_tp2_rank1.npz", "llama_tp2_rank2.npz");
  CHECK(missing.error() ==
        "M: has no .npz file of rank 1, though tensor_parallel is 2 | copy the whole folder");
  const Folder bare("f8-npz-stored");
  fs::remove(bare.path() / "llama_tp1.json");
  CHECK(bare.error() ==
        "M: has .npz files, but no JSON file with 'layers' and 'tensor_parallel' "
        "that describes them | copy the whole folder");
  const Folder two("f8-npz-stored");
  two.put("f8-npz-tp2/llama_tp2.json", "other.json");
  CHECK(two.error() ==
        "M: 'llama_tp1.json' and 'other.json' describe different models | keep the "
        "files of one checkpoint in a folder");
}

TEST_CASE("ranks: the rank is the number behind the last 'rank' of a file's name") {
  const Folder folder("f8-npz-tp2");
  folder.rename("llama_tp2_rank1.npz", "frank7_rank1_of.npz");
  CHECK(folder.error() == "");
}

TEST_CASE("ranks: a checkpoint with a model file is not read by its ranks") {
  const Folder folder("f8-tp1");
  CHECK(source_kind(folder.path()) == SourceKind::scale_folder);
  folder.put("f2-k_scale/model.safetensors", "model.safetensors");
  CHECK(source_kind(folder.path()) == SourceKind::model_folder);
}

}  // namespace
}  // namespace fp8kv
