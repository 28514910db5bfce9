#include "quant/weight_forms.h"

#include <vector>

#include "base/error.h"
#include "quant/weight_search.h"

namespace fp8kv {
namespace {

constexpr int64_t kWordBits = 32;

// The shape without dimensions of size 1, except the first.
std::vector<int64_t> squeezed(const Shape& shape) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (i == 0 || shape[i] != 1) dims.push_back(shape[i]);
  }
  return dims;
}

// Sets the blocks that share a scale in a matrix of bytes, from the shape of the scales.
void set_scales(const WeightSearch& search, const TensorEntry& scales, StoredWeight& out) {
  out.scales = &scales;
  out.matrix.scale_dtype = scales.dtype == DType::u8 ? DType::f8_e8m0 : scales.dtype;
  if (out.matrix.scale_dtype != DType::f8_e8m0) search.check_scale_dtype(scales);
  const int64_t rows = search.rows(), columns = search.columns();
  out.matrix.block_columns = columns;
  if (scales.shape.elements() == 1) return;
  const std::vector<int64_t> dims = squeezed(scales.shape);
  if (dims.size() == 1 && dims[0] == rows) {
    out.matrix.row_step = 1;
    return;
  }
  const int64_t down = dims[0], across = dims.size() == 2 ? dims[1] : 1;
  const auto are_blocks = [&](int64_t block_rows, int64_t block_columns) {
    return down == parts_of(rows, block_rows) && across == parts_of(columns, block_columns);
  };
  const QuantSettings& said = search.settings();
  const int64_t block_rows = said.block_rows > 0 ? said.block_rows : kUsualBlock;
  const int64_t block_columns = said.block_rows > 0 ? said.block_columns : kUsualBlock;
  const int64_t bands = search.bands(), band_rows = rows / bands;
  // If the numbers of blocks are alike, vLLM takes each band's own.
  if (band_rows % block_rows != 0 && down == bands * parts_of(band_rows, block_rows) &&
      across == parts_of(columns, block_columns) && bands > 1) {
    set_blocks(block_rows, block_columns, across, out);
    out.bands = bands;
    out.matrix.rows = band_rows;
    return;
  }
  if (dims.size() <= 2 && said.block_rows > 0 && are_blocks(said.block_rows, said.block_columns)) {
    return set_blocks(said.block_rows, said.block_columns, across, out);
  }
  if (dims.size() == 2 && down == rows && columns % across == 0) {
    return set_blocks(1, columns / across, across, out);
  }
  if (dims.size() <= 2 && said.block_rows == 0 && are_blocks(kUsualBlock, kUsualBlock)) {
    return set_blocks(kUsualBlock, kUsualBlock, across, out);
  }
  search.refuse_shape(scales,
                      cat("one scale, one for each row, for each group of columns, or for each ",
                          block_rows, " x ", block_columns));
}

// Whether the bytes are two codes of 4 bits each, as DeepSeek V4 publishes its experts.
bool is_deepseek_fp4(const WeightSearch& search, const TensorEntry& codes) {
  const TensorEntry* scales = search.find(".scale");
  return codes.dtype == DType::i8 && scales != nullptr && scales->dtype == DType::f8_e8m0;
}

std::optional<StoredWeight> find_bytes(const WeightSearch& search) {
  constexpr const char* kScales[] = {".weight_scale", ".weight_scale_inv", ".scale",
                                     ".qscale_weight"};
  const TensorEntry* codes = search.find(".weight");
  if (codes == nullptr) return std::nullopt;
  const bool is_fp8 = fp8_format(codes->dtype).has_value();
  if (!is_fp8 && codes->dtype != DType::i8) return std::nullopt;
  if (is_deepseek_fp4(search, *codes)) return std::nullopt;
  search.check_shape(*codes, {search.rows(), search.columns()});
  StoredWeight out = search.start(is_fp8 ? "fp8" : "int8", *codes);
  out.matrix.codes_as = byte_codes(codes->dtype);
  set_scales(search, search.at(kScales, *codes), out);
  if (is_fp8) return out;
  if (const TensorEntry* zeros = search.find(".weight_zero_point")) {
    search.check_dtype(*zeros, DType::i8);
    search.check_shape(*zeros, out.scales->shape);
    out.zeros = zeros;
    out.matrix.zeros_as = ZeroPoints::i8;
  }
  return out;
}

std::optional<StoredWeight> find_fp4(const WeightSearch& search) {
  constexpr const char* kScales[] = {".weight_scale", ".scale"};
  const TensorEntry* codes = search.find(".weight_packed");
  const TensorEntry* bytes = search.find(".weight");
  // Other forms store bytes as .weight too, so scales of this form must stand beside it.
  const bool of_deepseek = bytes != nullptr && is_deepseek_fp4(search, *bytes);
  if (codes == nullptr && (search.find(kScales[0]) || of_deepseek)) codes = bytes;
  if (codes == nullptr || (codes->dtype != DType::u8 && !of_deepseek)) return std::nullopt;
  search.check_shape(*codes, {search.rows(), parts_of(search.columns(), 2)});
  const TensorEntry& scales = search.at(kScales, *codes);
  const bool is_nv = scales.dtype == DType::f8_e4m3;
  StoredWeight out = search.start(is_nv ? "nvfp4" : "mxfp4", *codes);
  out.matrix.codes_as = WeightCodes::e2m1;
  out.matrix.bits = 4;
  out.scales = &scales;
  out.matrix.scale_dtype = is_nv ? DType::f8_e4m3 : DType::f8_e8m0;
  if (!is_nv && scales.dtype != DType::u8) search.check_dtype(scales, DType::f8_e8m0);
  const int64_t group = is_nv ? 16 : 32;
  if (search.columns() % group != 0) {
    search.refuse_shape(*codes, cat("groups of ", group, " columns"));
  }
  search.check_shape(scales, {search.rows(), search.columns() / group});
  set_blocks(1, group, search.columns() / group, out);
  if (!is_nv) return out;
  constexpr const char* kOverall[] = {".weight_scale_2", ".weight_global_scale"};
  out.overall = &search.at(kOverall, scales);
  out.matrix.divides = out.overall == search.find(kOverall[1]);
  search.check_dtype(*out.overall, DType::f32);
  if (out.overall->shape.elements() != 1) search.refuse_shape(*out.overall, "one number");
  return out;
}

// The bits (4 or 8) with which `along` codes fill `words` words; 0 if both do not fit.
int32_t bits_of(int64_t words, int64_t along) {
  for (const int32_t bits : {4, 8}) {
    if (words == parts_of(along, kWordBits / bits)) return bits;
  }
  return 0;
}

std::optional<StoredWeight> find_packed(const WeightSearch& search) {
  constexpr const char* kScales[] = {".weight_scale"};
  const TensorEntry* codes = search.find(".weight_packed");
  if (codes == nullptr || codes->dtype != DType::i32) return std::nullopt;
  StoredWeight out = search.start("pack-quantized", *codes);
  const int32_t bits = codes->shape.rank() == 2 ? bits_of(codes->shape[1], search.columns()) : 0;
  if (bits == 0 || codes->shape[0] != search.rows()) {
    search.refuse_shape(*codes, "rows of 4 or 8 bits packed into words");
  }
  out.matrix.codes_as = WeightCodes::words;
  out.matrix.bits = bits;
  const TensorEntry& scales = search.at(kScales, *codes);
  set_scales(search, scales, out);
  out.matrix.zeros_as = ZeroPoints::middle;
  if (const TensorEntry* zeros = search.find(".weight_zero_point")) {
    search.check_dtype(*zeros, DType::i32);
    search.check_shape(*zeros, {parts_of(search.rows(), kWordBits / bits), out.matrix.n_groups});
    out.zeros = zeros;
    out.matrix.zeros_as = ZeroPoints::words_down;
  }
  if (const TensorEntry* groups = search.find(".weight_g_idx")) {
    search.check_dtype(*groups, DType::i32);
    search.check_shape(*groups, {search.columns()});
    out.groups = groups;
  }
  return out;
}

// GPTQ and AWQ use the same names with different layouts.
std::optional<StoredWeight> find_gptq_or_awq(const WeightSearch& search) {
  constexpr const char* kScales[] = {".scales"};
  constexpr const char* kZeros[] = {".qzeros"};
  const TensorEntry* codes = search.find(".qweight");
  if (codes == nullptr) return std::nullopt;
  search.check_dtype(*codes, DType::i32);
  const int64_t rows = search.rows(), columns = search.columns();
  const bool is_awq = rows % 8 == 0 && codes->shape == Shape{columns, rows / 8};
  const int32_t bits = is_awq ? 4
                       : codes->shape.rank() == 2 && codes->shape[1] == rows
                           ? bits_of(codes->shape[0], columns)
                           : 0;
  if (bits == 0 || columns % (kWordBits / bits) != 0 || rows % (kWordBits / bits) != 0) {
    search.refuse_shape(
        *codes, cat("columns of 4 or 8 bits packed into words, as [", columns / 8, ", ", rows,
                    "] of GPTQ or [", columns, ", ", rows / 8, "] of AWQ"));
  }
  StoredWeight out = search.start(is_awq ? "awq" : "gptq", *codes);
  out.matrix.bits = bits;
  out.matrix.codes_as = is_awq ? WeightCodes::words_shuffled : WeightCodes::words_down;
  out.matrix.zeros_as = is_awq ? ZeroPoints::words_shuffled : ZeroPoints::words;
  out.matrix.zero_add = is_awq || search.settings().plain_zeros ? 0 : 1;
  const TensorEntry& scales = search.at(kScales, *codes);
  search.check_scale_dtype(scales);
  if (scales.shape.rank() != 2 || scales.shape[1] != rows) {
    search.refuse_shape(scales, cat("[groups, ", rows, "]"));
  }
  out.scales = &scales;
  out.matrix.scale_dtype = scales.dtype;
  out.matrix.row_step = 1;
  out.matrix.group_step = rows;
  const int64_t groups = scales.shape[0];
  out.zeros = &search.at(kZeros, *codes);
  search.check_dtype(*out.zeros, DType::i32);
  search.check_shape(*out.zeros, {groups, rows / (kWordBits / bits)});
  search.set_groups(scales, groups, out);
  if (const TensorEntry* order = is_awq ? nullptr : search.find(".g_idx")) {
    search.check_dtype(*order, DType::i32);
    search.check_shape(*order, {columns});
    out.groups = order;
  }
  return out;
}

using Find = std::optional<StoredWeight> (*)(const WeightSearch& search);

// The first form that finds its tensors is taken.
constexpr Find kForms[] = {find_bytes, find_packed, find_fp4, find_gptq_or_awq};

}  // namespace

std::optional<StoredWeight> find_stored_weight(const std::string& module, const WeightShape& shape,
                                               const QuantSettings& settings,
                                               const FindTensor& find, const std::string& source) {
  const WeightSearch search(module, shape, settings, find, source);
  for (const Find form : kForms) {
    if (auto found = form(search)) {
      search.check_group_size(*found);
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace fp8kv
