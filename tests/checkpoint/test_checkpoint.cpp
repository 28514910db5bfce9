#include <atomic>
#include <cstring>
#include <thread>

#include <doctest/doctest.h>

#include "checkpoint/checkpoint.h"
#include "files/file.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";

// A folder with the tiny model, and the name of that folder in messages.
struct ModelFolder {
  explicit ModelFolder(int n_shards = 1) : path(temp / "model"), name(quote(path.string())) {
    test::write_tiny_checkpoint(path, test::tiny_config(), {.n_shards = n_shards});
  }
  std::string file(const char* leaf) const { return quote((path / leaf).string()); }
  void write(const std::string& leaf, std::string_view bytes) const {
    temp.write("model/" + leaf, bytes);
  }
  std::string error() const {
    return test::error_of([this] { Checkpoint::open(path); });
  }
  std::string help() const {
    try {
      Checkpoint::open(path);
    } catch (const Error& error) {
      return error.help();
    }
    return "";
  }

  test::TempDir temp;
  fs::path path;
  std::string name;
};

// The bytes of a safetensors file with these U8 tensors of one element.
std::string bytes_of(const std::vector<std::string>& names) {
  static const std::byte kOne{1};
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : names) {
    tensors.push_back({name, ConstTensorView(&kOne, DType::u8, {1})});
  }
  return safetensors_bytes(tensors, {});
}

std::vector<float> floats(const MappedTensor& tensor) {
  const float* begin = tensor.view.as<float>();
  return {begin, begin + tensor.view.shape.elements()};
}

}  // namespace

TEST_CASE("checkpoint: a single file gives every tensor with its values") {
  const ModelFolder model;
  const Checkpoint checkpoint = Checkpoint::open(model.path);
  CHECK(checkpoint.config().at("model_type").as_string() == "llama");
  CHECK_FALSE(checkpoint.index());
  REQUIRE(checkpoint.shards().size() == 1);
  CHECK(checkpoint.shards()[0].file == "model.safetensors");
  CHECK(checkpoint.shards()[0].bytes == fs::file_size(model.path / "model.safetensors"));
  const auto tensors = test::tiny_tensors(test::tiny_config());
  CHECK(checkpoint.tensors().size() == tensors.size());
  for (const test::TinyTensor& tensor : tensors) {
    CAPTURE(tensor.name);
    CHECK(checkpoint.at(tensor.name).shape == tensor.shape);
    CHECK(floats(checkpoint.map(tensor.name)) == tensor.values);
  }
}

TEST_CASE("checkpoint: shards give the same tensors as a single file") {
  const ModelFolder single;
  const ModelFolder sharded(3);
  const Checkpoint one = Checkpoint::open(single.path);
  const Checkpoint three = Checkpoint::open(sharded.path);
  REQUIRE(three.shards().size() == 3);
  CHECK(three.shards()[1].file == "model-00002-of-00003.safetensors");
  CHECK(three.index());
  CHECK(three.tensors().size() == one.tensors().size());
  for (const auto& [name, location] : one.tensors()) CHECK(three.read(name) == one.read(name));
}

TEST_CASE("checkpoint: reads parts of a tensor without mapping") {
  const ModelFolder model;
  const Checkpoint checkpoint = Checkpoint::open(model.path);
  const std::string whole = checkpoint.read("model.norm.weight");
  CHECK(whole.size() == 32 * 4);
  CHECK(checkpoint.read("model.norm.weight", 8, 12) == whole.substr(8, 12));
  CHECK(checkpoint.read("model.norm.weight", 128, 0) == "");
}

TEST_CASE("checkpoint: an absent tensor is named with the nearest one") {
  const ModelFolder model;
  const Checkpoint checkpoint = Checkpoint::open(model.path);
  CHECK(checkpoint.find("model.norm.wait") == nullptr);
  const std::string expected =
      cat(model.name, ": has no tensor 'model.norm.wait' (did you mean 'model.norm.weight'?)");
  CHECK(test::error_of([&] { checkpoint.at("model.norm.wait"); }) == expected);
  CHECK(test::error_of([&] { checkpoint.map("model.norm.wait"); }) == expected);
  CHECK(test::error_of([&] { checkpoint.read("model.norm.wait"); }) == expected);
}

TEST_CASE("checkpoint: mapped tensors outlive the checkpoint and its file") {
  const ModelFolder model;
  MappedTensor norm;
  {
    norm = Checkpoint::open(model.path).map("model.norm.weight");
    fs::remove_all(model.path);
  }
  for (const auto& tensor : test::tiny_tensors(test::tiny_config())) {
    if (tensor.name == "model.norm.weight") CHECK(floats(norm) == tensor.values);
  }
}

TEST_CASE("checkpoint: several threads may map at once") {
  const ModelFolder model(3);
  const Checkpoint checkpoint = Checkpoint::open(model.path);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (const auto& [name, location] : checkpoint.tensors()) {
        const MappedTensor mapped = checkpoint.map(name);
        const std::string read = checkpoint.read(name);
        wrong += std::memcmp(mapped.view.data, read.data(), read.size()) != 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("checkpoint: data that the file does not align comes out aligned") {
  const ModelFolder model;
  std::string header = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  while (header.size() % 8 != 5) header += ' ';  // puts the float at 6 modulo 8
  std::string bytes = {static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  bytes += header + "x";
  const float value = 3.25f;
  bytes.append(reinterpret_cast<const char*>(&value), 4);
  model.write("model.safetensors", bytes);
  const MappedTensor mapped = Checkpoint::open(model.path).map("a");
  CHECK(reinterpret_cast<uintptr_t>(mapped.view.data) % 4 == 0);
  CHECK(floats(mapped) == std::vector<float>{3.25f});
}

TEST_CASE("checkpoint: a file that changed since it was opened is refused") {
  const ModelFolder model;
  const Checkpoint checkpoint = Checkpoint::open(model.path);
  const auto size = fs::file_size(model.path / "model.safetensors");
  fs::resize_file(model.path / "model.safetensors", 100);
  CHECK(test::error_of([&] { checkpoint.map("model.norm.weight"); }) ==
        cat(model.file("model.safetensors"), ": changed while it was read: had ", grouped(size),
            " bytes, has 100"));
}

TEST_CASE("checkpoint: says what a path is that is no model folder") {
  const test::TempDir temp;
  const auto error_at = [](const fs::path& path) {
    return test::error_of([&] { Checkpoint::open(path); });
  };
  CHECK(error_at(temp / "nothing") == cat(quote((temp / "nothing").string()), ": no such folder"));
  const fs::path file = temp.write("model.safetensors", "");
  CHECK(error_at(file) == cat(quote(file.string()), ": is a file, expected a model folder"));
  CHECK(error_at(file / "below") == cat(quote((file / "below").string()), ": no such folder"));
  CHECK(error_at(temp.path()) ==
        cat(quote(temp.path().string()),
            ": has no config.json, so it is not a Hugging Face model folder"));
}

TEST_CASE("checkpoint: each wrong path has its own way out") {
  const test::TempDir temp;
  const auto help_at = [](const fs::path& path) -> std::string {
    try {
      Checkpoint::open(path);
    } catch (const Error& error) {
      return error.help();
    }
    return "";
  };
  CHECK(help_at(temp / "nothing") ==
        "check the path; a model of the Hugging Face Hub is fetched with: hf download OWNER/NAME "
        "--local-dir FOLDER");
  CHECK(help_at(temp.path()) == "pass the folder that holds config.json and the weights");
  fs::create_directory(temp / "snapshots");
  CHECK(help_at(temp.path()) ==
        "this is an entry of the hub's cache: pass one of the folders in its 'snapshots'");
}

TEST_CASE("checkpoint: a config that is no object is refused") {
  const ModelFolder model;
  model.write("config.json", "[1]");
  CHECK(model.error() == cat(model.file("config.json"), ": is [1], expected an object"));
  model.write("config.json", "{\"a\": 1,}");
  CHECK(model.error() == cat(model.file("config.json"),
                             ": not valid JSON at line 1, column 9: unexpected '}'; expected "
                             "string literal"));
}

TEST_CASE("checkpoint: a folder without usable weights says what it has") {
  const ModelFolder model;
  fs::remove(model.path / "model.safetensors");
  CHECK(model.error() == cat(model.name,
                             ": has no weights, expected model.safetensors or "
                             "model.safetensors.index.json"));
  model.write("training_args.bin", "");
  CHECK(model.error() == cat(model.name,
                             ": has no weights, expected model.safetensors or "
                             "model.safetensors.index.json"));
  model.write("model-00001-of-00002.safetensors", "");
  CHECK(model.error() ==
        cat(model.name,
            ": has neither model.safetensors nor model.safetensors.index.json to say which of its "
            ".safetensors files are the model (the first is 'model-00001-of-00002.safetensors')"));
  model.write("rank0.safetensors", "");
  CHECK(model.error() == cat(model.name,
                             ": is a TensorRT-LLM folder, expected a Hugging Face "
                             "model folder"));
  model.write("pytorch_model.bin", "");
  CHECK(model.error() == cat(model.name,
                             ": has its weights as pickles only ('pytorch_model.bin'), which can "
                             "run code when they are read"));
  CHECK(model.help() ==
        "convert it to safetensors where you trust it: python -c \"from transformers import "
        "AutoModelForCausalLM as M; M.from_pretrained('FOLDER', "
        "torch_dtype='auto').save_pretrained('NEW_FOLDER')\", and copy the tokenizer's files");
}

TEST_CASE("checkpoint: names the shards that the index promises and the folder lacks") {
  const ModelFolder model(3);
  fs::remove(model.path / "model-00002-of-00003.safetensors");
  CHECK(
      model.error() ==
      cat(model.file(kIndex),
          ": names the shard 'model-00002-of-00003.safetensors', which the folder does not have"));
  fs::remove(model.path / "model-00003-of-00003.safetensors");
  CHECK(model.error() == cat(model.file(kIndex),
                             ": names the shard 'model-00002-of-00003.safetensors' and 1 other, "
                             "which the folder does not have"));
  CHECK(model.help() ==
        "copy the file into the folder, or fetch the model again: hf download OWNER/NAME "
        "--local-dir FOLDER");
}

TEST_CASE("checkpoint: shards that leave the folder are refused") {
  const ModelFolder model(2);
  const auto error_with = [&](const std::string& file) {
    model.write(kIndex, cat(R"({"weight_map": {"a": ")", file, R"("}})"));
    return model.error();
  };
  const std::string where = cat(model.file(kIndex), ": weight_map.a: the file ");
  CHECK(error_with("/etc/passwd.safetensors") ==
        cat(where, "'/etc/passwd.safetensors' is not inside the model folder"));
  CHECK(error_with("../model/model-00001-of-00002.safetensors") ==
        cat(where, "'../model/model-00001-of-00002.safetensors' is not inside the model folder"));
  CHECK(error_with("a/../../b.safetensors") ==
        cat(where, "'a/../../b.safetensors' is not inside the model folder"));
  CHECK(error_with("..\\\\b.safetensors") ==
        cat(where, R"('..\\b.safetensors' is not inside the model folder)"));
  CHECK(error_with("a\\u0000.safetensors") ==
        cat(where, R"('a\x00.safetensors' is not inside the model folder)"));
}

TEST_CASE("checkpoint: an index must map names to .safetensors files") {
  const ModelFolder model(2);
  const std::string where = model.file(kIndex);
  model.write(kIndex, "{}");
  CHECK(model.error() == cat(where, ": the key 'weight_map' is missing"));
  model.write(kIndex, R"({"weight_map": {}})");
  CHECK(model.error() ==
        cat(where, ": weight_map: is {}, expected an object of tensor names and files"));
  model.write(kIndex, R"({"weight_map": {"a": 1}})");
  CHECK(model.error() == cat(where, ": weight_map.a: is a number (1), expected a string"));
  model.write(kIndex, R"({"weight_map": {"a": "pytorch_model.bin"}})");
  CHECK(model.error() ==
        cat(where,
            ": weight_map.a: is 'pytorch_model.bin', expected the name of a .safetensors file"));
}

TEST_CASE("checkpoint: a shard in a folder below is read") {
  const ModelFolder model;
  fs::remove(model.path / "model.safetensors");
  model.write("weights/one.safetensors", bytes_of({"a"}));
  model.write(kIndex, R"({"weight_map": {"a": "weights/one.safetensors"}})");
  CHECK(Checkpoint::open(model.path).read("a") == "\1");
}

TEST_CASE("checkpoint: index and shards must agree on who holds what") {
  const ModelFolder model;
  fs::remove(model.path / "model.safetensors");
  model.write("x.safetensors", bytes_of({"a", "b"}));
  model.write("y.safetensors", bytes_of({"c"}));
  model.write(kIndex, R"({"weight_map": {"a": "x.safetensors", "d": "y.safetensors"}})");
  CHECK(model.error() == cat(model.file(kIndex),
                             ": places the tensor 'd' in 'y.safetensors', but no shard holds it"));
  model.write(kIndex, R"({"weight_map": {"a": "x.safetensors", "b": "y.safetensors"}})");
  CHECK(model.error() == cat(model.file(kIndex),
                             ": places the tensor 'b' in 'y.safetensors', but 'x.safetensors' "
                             "holds it"));
  model.write("y.safetensors", bytes_of({"b", "c"}));
  model.write(kIndex, R"({"weight_map": {"a": "x.safetensors", "c": "y.safetensors"}})");
  CHECK(model.error() ==
        cat(model.name, ": the tensor 'b' is both in 'x.safetensors' and in 'y.safetensors'"));
}

TEST_CASE("checkpoint: tensors of a shard count even where the index forgets them") {
  const ModelFolder model;
  fs::remove(model.path / "model.safetensors");
  model.write("x.safetensors", bytes_of({"a", "b"}));
  model.write(kIndex, R"({"weight_map": {"a": "x.safetensors"}})");
  CHECK(Checkpoint::open(model.path).tensors().size() == 2);
}

TEST_CASE("checkpoint: model.safetensors wins over an index that does not name it") {
  const ModelFolder model;
  model.write("model.safetensors", bytes_of({"a"}));
  model.write("x.safetensors", bytes_of({"b"}));
  model.write(kIndex, R"({"weight_map": {"b": "x.safetensors"}})");
  const Checkpoint checkpoint = Checkpoint::open(model.path);
  CHECK(checkpoint.find("a") != nullptr);
  CHECK(checkpoint.find("b") == nullptr);
  CHECK_FALSE(checkpoint.index());
}

TEST_CASE("checkpoint: an index that names model.safetensors and others is followed") {
  const ModelFolder model;
  model.write("model.safetensors", bytes_of({"a"}));
  model.write("model-kv-scales.safetensors", bytes_of({"s"}));
  model.write("consolidated.safetensors", bytes_of({"a"}));
  model.write(kIndex, R"({"metadata": {}, "weight_map": {"a": "model.safetensors",)"
                      R"("s": "model-kv-scales.safetensors"}})");
  const Checkpoint checkpoint = Checkpoint::open(model.path);
  REQUIRE(checkpoint.shards().size() == 2);
  CHECK(checkpoint.shards()[0].file == "model-kv-scales.safetensors");
  CHECK(checkpoint.shards()[1].file == "model.safetensors");
  CHECK(checkpoint.find("s") != nullptr);
  CHECK(checkpoint.index());
}

TEST_CASE("checkpoint: a git-LFS pointer instead of weights is recognised") {
  const ModelFolder model;
  model.write("model.safetensors",
              "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 99\n");
  CHECK(model.error() ==
        cat(model.file("model.safetensors"), ": is a git-LFS pointer, not the file itself"));
  CHECK(model.help() == "run 'git lfs pull' in the repository that it is from");
}

TEST_CASE("checkpoint: a shard that was cut short is named with both sizes") {
  const ModelFolder model(2);
  const fs::path shard = model.path / "model-00002-of-00002.safetensors";
  const auto size = fs::file_size(shard);
  fs::resize_file(shard, size - 1000);
  CHECK(model.error() == cat(quote(shard.string()), ": is cut short: has ", grouped(size - 1000),
                             " bytes, expected ", grouped(size)));
  CHECK(model.help() == "the file is damaged or incomplete: download or copy it again");
}

TEST_CASE("checkpoint: links of a hub cache lead outside the folder and are followed") {
  const ModelFolder model(2);
  const fs::path snapshot = model.temp / "snapshots/abc";
  fs::create_directories(snapshot);
  for (const auto& entry : fs::directory_iterator(model.path)) {
    fs::create_symlink(fs::path("../../model") / entry.path().filename(),
                       snapshot / entry.path().filename());
  }
  CHECK(Checkpoint::open(snapshot).tensors().size() == 21);

  const fs::path blob = model.path / "model-00001-of-00002.safetensors";
  fs::remove(blob);
  CHECK(test::error_of([&] { Checkpoint::open(snapshot); }) ==
        cat(quote((snapshot / blob.filename()).string()),
            ": is a symbolic link to '../../model/model-00001-of-00002.safetensors', which is not "
            "there"));
}

TEST_CASE("checkpoint: opens the real models") {
  for (const char* name : {"stories260K-hf-f32", "stories260K-hf-bf16-sharded"}) {
    const auto folder = test::shared_data(cat("models/", name));
    if (!folder) return;
    CHECK(Checkpoint::open(*folder).tensors().size() == 47);
  }
}

}  // namespace fp8kv
