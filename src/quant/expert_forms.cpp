#include "quant/expert_forms.h"

#include "base/error.h"
#include "quant/weight_search.h"

namespace fp8kv {
namespace {

struct Experts {
  const WeightSearch& search;
  bool turned;

  int64_t count() const { return search.shape()[0]; }
  int64_t rows() const { return search.shape()[1]; }  // of one
  int64_t columns() const { return search.shape()[2]; }
  const TensorEntry* find(const char* suffix) const { return search.find(suffix); }
  // Whether the shape has one number for each expert.
  bool is_one_each(const Shape& shape) const {
    return shape == Shape{count()} || shape == Shape{count(), 1} || shape == Shape{count(), 1, 1};
  }
};

void set_one_each(int64_t block_rows, int64_t block_columns, StoredWeight& out) {
  set_blocks(block_rows, block_columns, 1, out);
  out.scales_for = "each expert";
}

// Sets scales for blocks of [experts, rows, columns]. No block spans two experts.
void set_grid(const Experts& experts, const TensorEntry& scales, StoredWeight& out) {
  const QuantSettings& said = experts.search.settings();
  const bool is_said = said.block_rows > 0;
  const int64_t block_rows = is_said ? said.block_rows : kUsualBlock;
  const int64_t block_columns = is_said ? said.block_columns : kUsualBlock;
  const int64_t rows = experts.rows(), columns = experts.columns();
  const Shape& shape = scales.shape;
  if (shape.rank() == 3 && shape[0] == experts.count()) {
    const int64_t down = shape[1], across = shape[2];
    if (down == rows && across > 0 && columns % across == 0) {
      return set_blocks(1, columns / across, across, out);
    }
    if (down == parts_of(rows, block_rows) && across == parts_of(columns, block_columns)) {
      if (down > 1 && rows % block_rows != 0) {
        experts.search.refuse_shape(
            scales, cat("blocks of ", block_rows, " rows that divide those of an expert"));
      }
      return set_blocks(down > 1 ? block_rows : rows, block_columns, across, out);
    }
    if (down == 2 && across == 1 && !is_said && rows % 2 == 0) {
      set_blocks(rows / 2, columns, 1, out);
      out.scales_for = "each half of an expert's rows";
      return;
    }
  }
  experts.search.refuse_shape(scales,
                              cat("one scale, one for each expert, for each row of each, for each "
                                  "group of columns, or for each ",
                                  block_rows, " x ", block_columns));
}

void set_byte_scales(const Experts& experts, const TensorEntry& scales, StoredWeight& out) {
  out.scales = &scales;
  out.matrix.scale_dtype = scales.dtype == DType::u8 ? DType::f8_e8m0 : scales.dtype;
  if (out.matrix.scale_dtype != DType::f8_e8m0) experts.search.check_scale_dtype(scales);
  out.matrix.block_columns = out.matrix.columns;
  if (scales.shape.elements() == 1) return;
  if (experts.is_one_each(scales.shape)) {
    return set_one_each(experts.rows(), experts.columns(), out);
  }
  set_grid(experts, scales, out);
}

// Starts a weight in the order of the plain tensor: rows of the stored matrix are columns of
// experts.
StoredWeight start_turned(const Experts& experts, const char* form, const TensorEntry& codes) {
  StoredWeight out = experts.search.start(form, codes);
  out.turned = true;
  out.matrix.rows = experts.count() * experts.columns();
  out.matrix.columns = experts.rows();
  return out;
}

StoredWeight turned_bytes(const Experts& experts, const TensorEntry& codes) {
  constexpr const char* kScales[] = {"_weight_scale", "_scale"};
  const int64_t count = experts.count(), rows = experts.rows(), columns = experts.columns();
  experts.search.check_shape(codes, {count, columns, rows});
  StoredWeight out = start_turned(experts, "fp8", codes);
  out.matrix.codes_as = byte_codes(codes.dtype);
  const TensorEntry& scales = experts.search.at(kScales, codes);
  experts.search.check_scale_dtype(scales);
  out.scales = &scales;
  out.matrix.scale_dtype = scales.dtype;
  out.matrix.block_columns = rows;
  if (scales.shape.elements() == 1) return out;
  if (experts.is_one_each(scales.shape)) {
    set_one_each(columns, rows, out);
  } else if (scales.shape == Shape{count, 1, rows} || scales.shape == Shape{count, rows, 1}) {
    set_blocks(columns, 1, rows, out);
    out.scales_for = "each row";
  } else {
    experts.search.refuse_shape(scales, "one scale, one for each expert, or for each row of each");
  }
  return out;
}

std::optional<StoredWeight> find_bytes(const Experts& experts) {
  constexpr const char* kNamed[] = {".weight_scale"};
  constexpr const char* kBare[] = {"_scale_inv"};
  const TensorEntry* const named = experts.find(".weight");
  const TensorEntry* const codes = named != nullptr ? named : experts.find("");
  if (codes == nullptr || !fp8_format(codes->dtype)) return std::nullopt;
  if (experts.turned) return turned_bytes(experts, *codes);
  experts.search.check_shape(*codes, experts.search.shape());
  StoredWeight out = experts.search.start("fp8", *codes);
  out.matrix.codes_as = byte_codes(codes->dtype);
  set_byte_scales(
      experts, named ? experts.search.at(kNamed, *codes) : experts.search.at(kBare, *codes), out);
  return out;
}

std::optional<StoredWeight> find_nvfp4(const Experts& experts) {
  constexpr const char* kScales = "_weight_scale";
  constexpr const char* kOverall[] = {"_weight_scale_2"};
  constexpr int64_t kGroup = 16;
  const TensorEntry* const codes = experts.find("");
  const TensorEntry* const scales = experts.find(kScales);
  if (!experts.turned || codes == nullptr || scales == nullptr || codes->dtype != DType::u8) {
    return std::nullopt;
  }
  const int64_t count = experts.count(), rows = experts.rows(), columns = experts.columns();
  if (columns % kGroup != 0) experts.search.refuse_shape(*codes, "groups of 16 columns");
  experts.search.check_shape(*codes, {count, columns / 2, rows});
  experts.search.check_dtype(*scales, DType::f8_e4m3);
  experts.search.check_shape(*scales, {count, columns / kGroup, rows});
  StoredWeight out = start_turned(experts, "nvfp4", *codes);
  out.matrix.codes_as = WeightCodes::e2m1_down;
  out.matrix.bits = 4;
  out.matrix.scale_dtype = DType::f8_e4m3;
  out.scales = scales;
  out.scales_for = "each 16 columns of a row";
  set_blocks(kGroup, 1, rows, out);
  out.overall = &experts.search.at(kOverall, *scales);
  experts.search.check_dtype(*out.overall, DType::f32);
  if (out.overall->shape.elements() != 1) experts.search.refuse_shape(*out.overall, "one number");
  return out;
}

std::optional<StoredWeight> find_mxfp4(const Experts& experts) {
  constexpr const char* kScales[] = {"_scales"};
  constexpr int64_t kGroup = 32;
  const WeightSearch& search = experts.search;
  const TensorEntry* const codes = experts.find("_blocks");
  if (codes == nullptr) return std::nullopt;
  search.check_dtype(*codes, DType::u8);
  const int64_t count = experts.count(), rows = experts.rows();
  if (experts.columns() % kGroup != 0) search.refuse_shape(*codes, "groups of 32 columns");
  const int64_t groups = experts.columns() / kGroup;
  search.check_shape(*codes, {count, rows, groups, kGroup / 2});
  StoredWeight out = search.start("mxfp4", *codes);
  out.matrix.codes_as = WeightCodes::e2m1;
  out.matrix.bits = 4;
  const TensorEntry& scales = search.at(kScales, *codes);
  if (scales.dtype != DType::u8) search.check_dtype(scales, DType::f8_e8m0);
  search.check_shape(scales, {count, rows, groups});
  out.scales = &scales;
  out.matrix.scale_dtype = DType::f8_e8m0;
  set_blocks(1, kGroup, groups, out);
  return out;
}

using FindExperts = std::optional<StoredWeight> (*)(const Experts& experts);

// The first form that finds its tensors is taken.
constexpr FindExperts kExpertForms[] = {find_mxfp4, find_bytes, find_nvfp4};

}  // namespace

std::optional<StoredWeight> find_stored_experts(const std::string& module,
                                                const ExpertsShape& shape,
                                                const QuantSettings& settings,
                                                const FindTensor& find, const std::string& source) {
  const WeightSearch search(module, shape.whole, settings, find, source);
  for (const FindExperts form : kExpertForms) {
    if (auto found = form({search, shape.turned})) return found;
  }
  return std::nullopt;
}

}  // namespace fp8kv
