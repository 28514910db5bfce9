// A quantization_config and the tensors that it describes. The block of a golden model is changed
// as text, and its tensors by edits. So both stay well formed, and only their meaning changes.
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model/read_model_config.h"
#include "checkpoint/model_weights.h"
#include "config/families/tensor_table.h"
#include "formats/safetensors.h"
#include "fuzz.h"
#include "json/json.h"
#include "model/weights/weight_loader.h"
#include "model_folder.h"

namespace fp8kv::fuzz {
namespace {

constexpr const char* kBlock = "quantization_config";
constexpr const char* kWeights = "model.safetensors";
constexpr size_t kMostEdits = 8;

// A model of tests/golden/quantised.
struct Golden {
  std::string config;
  std::string weights;
  std::vector<TensorEntry> tensors;
  std::vector<FolderFile> others;
};

std::filesystem::path goldens(const std::filesystem::path& root) {
  return root / "tests/golden/quantised";
}

// The goldens with a single weights file, in order of their names.
const std::vector<Golden>& all_goldens() {
  static const std::vector<Golden> found = [] {
    std::vector<Golden> made;
    for (const auto& files : folders_below(goldens(FP8KV_SOURCE_DIR))) {
      Golden golden;
      for (const FolderFile& file : files) {
        if (file.name == "config.json") {
          golden.config = file.bytes;
        } else if (file.name == kWeights) {
          golden.weights = file.bytes;
        } else if (file.name != "golden.json") {
          golden.others.push_back(file);
        }
      }
      if (golden.config.empty() || golden.weights.empty()) continue;
      golden.tensors = parse_safetensors(golden.weights, golden.weights.size(), "golden").tensors;
      made.push_back(std::move(golden));
    }
    return made;
  }();
  return found;
}

// A change of one tensor, made of three bytes of the input.
struct Edit {
  uint8_t tensor = 0, what = 0, how = 0;
};

// An input: the number of a golden model, edits of three bytes, a blank line, and the block.
struct Case {
  const Golden* golden = nullptr;
  std::vector<Edit> edits;
  std::string block;
};

Case case_of(const std::string& input) {
  const std::vector<Golden>& known = all_goldens();
  const size_t end = std::min(input.find("\n\n"), input.size());
  Case out;
  out.golden = &known[input.empty() ? 0 : static_cast<uint8_t>(input[0]) % known.size()];
  for (size_t at = 1; at + 3 <= end && out.edits.size() < kMostEdits; at += 3) {
    out.edits.push_back({static_cast<uint8_t>(input[at]), static_cast<uint8_t>(input[at + 1]),
                         static_cast<uint8_t>(input[at + 2])});
  }
  out.block = end + 2 <= input.size() ? input.substr(end + 2) : "";
  return out;
}

struct Tensor {
  TensorEntry entry;
  std::string bytes;
};

// Values for scales: some break a product, some do not.
constexpr float kNumbers[] = {0, -1, NAN, INFINITY, -INFINITY, 1, 1e-38f, 3e38f, -0.0f, 0.5f};

void put_number(Tensor& tensor, float value) {
  const DType dtype = tensor.entry.dtype;
  if (dtype == DType::f32 && tensor.bytes.size() >= sizeof(value)) {
    std::memcpy(tensor.bytes.data(), &value, sizeof(value));
  } else if ((dtype == DType::f16 || dtype == DType::bf16) && tensor.bytes.size() >= 2) {
    const uint16_t half = dtype == DType::f16 ? f16_from_float(value) : bf16_from_float(value);
    std::memcpy(tensor.bytes.data(), &half, sizeof(half));
  }
}

// Sets another dtype of the same size.
void put_dtype(Tensor& tensor, uint8_t how) {
  constexpr DType kBytes[] = {DType::f8_e4m3, DType::f8_e5m2, DType::i8, DType::u8, DType::f8_e8m0};
  constexpr DType kHalves[] = {DType::f16, DType::bf16};
  constexpr DType kWords[] = {DType::f32, DType::i32};
  switch (dtype_bytes(tensor.entry.dtype)) {
    case 1:
      tensor.entry.dtype = kBytes[how % std::size(kBytes)];
      break;
    case 2:
      tensor.entry.dtype = kHalves[how % std::size(kHalves)];
      break;
    case 4:
      tensor.entry.dtype = kWords[how % std::size(kWords)];
      break;
    default:
      break;
  }
}

// Sets another shape with the same number of elements.
void put_shape(Tensor& tensor, uint8_t how) {
  const Shape old = tensor.entry.shape;
  if (how % 3 == 0) {
    tensor.entry.shape = Shape{old.elements()};
  } else if (how % 3 == 1 && old.rank() == 2) {
    tensor.entry.shape = Shape{old[1], old[0]};
  } else {
    tensor.entry.shape = Shape{old.elements(), 1};
  }
}

// Sets another name, of a kind that a form of weights is recognised by.
void put_name(Tensor& tensor, uint8_t how) {
  constexpr const char* kNames[] = {".weight",
                                    ".weight_scale",
                                    ".weight_scale_inv",
                                    ".weight_packed",
                                    ".qweight",
                                    ".scales",
                                    ".qzeros",
                                    ".g_idx",
                                    ".weight_zero_point",
                                    ".weight_scale_2",
                                    ".weight_global_scale",
                                    ".input_scale"};
  const size_t dot = tensor.entry.name.rfind('.');
  if (dot != std::string::npos) {
    tensor.entry.name = tensor.entry.name.substr(0, dot) + kNames[how % std::size(kNames)];
  }
}

std::string weights_of(const Case& given, bool& recoded) {
  std::map<std::string, Tensor> tensors;
  std::vector<Tensor> listed;
  for (const TensorEntry& entry : given.golden->tensors) {
    listed.push_back({entry, given.golden->weights.substr(entry.begin, entry.end - entry.begin)});
  }
  for (const Edit& edit : given.edits) {
    Tensor& tensor = listed[edit.tensor % listed.size()];
    const DType before = tensor.entry.dtype;
    switch (edit.what % 5) {
      case 0:
        tensor.entry.name.clear();
        break;
      case 1:
        put_number(tensor, kNumbers[edit.how % std::size(kNumbers)]);
        break;
      case 2:
        put_dtype(tensor, edit.how);
        break;
      case 3:
        put_shape(tensor, edit.how);
        break;
      default:
        put_name(tensor, edit.how);
        break;
    }
    recoded |= tensor.entry.dtype != before || edit.what % 5 == 4;
    if (edit.what % 5 == 1) recoded |= !tensor.entry.name.ends_with("scale");
  }
  for (Tensor& tensor : listed) {
    if (!tensor.entry.name.empty()) tensors[tensor.entry.name] = std::move(tensor);
  }
  std::vector<TensorToWrite> written;
  for (const auto& [name, tensor] : tensors) {
    written.push_back(
        {name, ConstTensorView(reinterpret_cast<const std::byte*>(tensor.bytes.data()),
                               tensor.entry.dtype, tensor.entry.shape)});
  }
  return safetensors_bytes(std::move(written), {});
}

// Requires that each quantised weight is finite: its scale times the largest code must be.
void check_finite(const Checkpoint& checkpoint, const ModelConfig& config) {
  const ModelWeights weights(checkpoint, DType::f32);
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    for (const ModelTensor& tensor : layer_tensors(config, layer)) {
      const Weight weight = weights.at(tensor);
      if (!weight.stored) continue;
      const std::string bytes = weights.read(weight, 0, weight.bytes());
      for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof(value));
        require(std::isfinite(value), "weights that are accepted are finite");
      }
    }
  }
}

void compute(bool recoded, const std::filesystem::path& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = make_cpu_backend(1);
  const WeightLoader loader(checkpoint, config, *backend);
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    static_cast<void>(loader.layer(layer));
  }
  if (!recoded) check_finite(checkpoint, config);
}

void run(const std::string& input) {
  const Case given = case_of(input);
  // Throws if the block is not JSON. The JSON reader has its own fuzzing.
  Json::parse(given.block, "block", JsonNumbers::python);
  bool recoded = false;
  std::vector<FolderFile> files = given.golden->others;
  files.push_back({"config.json", json_with_member(given.golden->config, kBlock, given.block)});
  files.push_back({kWeights, weights_of(given, recoded)});
  const std::filesystem::path folder = work_folder() / "quantised";
  lay_out(files, folder);
  try {
    compute(recoded, folder);
  } catch (const Error& error) {
    require(std::string_view(error.what()).find('\'') != std::string_view::npos,
            "an error names the file or the tensor");
    throw;
  }
}

std::vector<std::string> seeds(const std::filesystem::path&) {
  std::vector<std::string> inputs;
  const std::vector<Golden>& known = all_goldens();
  for (size_t i = 0; i < known.size(); ++i) {
    const Json config = Json::parse(known[i].config, "config.json", JsonNumbers::python);
    const auto block = config.find(kBlock);
    if (!block) continue;
    JsonWriter out(JsonWriter::Layout::one_line);
    out.value(*block);
    const std::string number(1, static_cast<char>(i));
    inputs.push_back(number + "\n\n" + out.text());
    for (const char* const edits : {"\x03\x01\x01", "\x05\x02\x02", "\x06\x04\x01\x07\x03\x01"}) {
      inputs.push_back(number + edits + "\n\n" + out.text());
    }
  }
  return inputs;
}

}  // namespace

const Target kQuantConfig{"quant-config", run, nullptr, seeds};

}  // namespace fp8kv::fuzz
