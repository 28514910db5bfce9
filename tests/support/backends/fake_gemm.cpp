// A fake cublasLt or, with FAKE_HIPBLASLT, hipBLASLt: the called functions, with the numbers of the
// real headers, on memory of the host. It is as strict as the real ones may be. Like theirs, an
// algorithm's bits depend on what it was chosen for.
// FAKE_GEMM in the environment: "create" and "matmul" make that function fail. With "narrow" there
// is no algorithm for results of fewer than 32 columns.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/numbers/half.h"

using namespace fp8kv;

#define EXPORT extern "C" __attribute__((visibility("default")))
#if defined(FAKE_HIPBLASLT)
#define NAME(suffix) hipblasLt##suffix
#else
#define NAME(suffix) cublasLt##suffix
#endif

namespace {

enum : int { kOk = 0, kInvalid = 7, kNotSupported = 15 };
#if defined(FAKE_HIPBLASLT)
enum : int { kCompute32 = 2, kNoTranspose = 111, kTranspose = 112 };
enum : int { kTransA = 0, kTransB = 1, kEpilogue = 2, kBias = 3 };
#else
enum : int { kCompute32 = 68, kNoTranspose = 0, kTranspose = 1 };
enum : int { kTransA = 3, kTransB = 4, kEpilogue = 7, kBias = 8 };
enum : int { kReductions = 3, kAlignmentA = 5, kAlignmentD = 8 };
#endif
constexpr int kWorkspace = 1;

struct Operation {
  int transpose_a = kNoTranspose;
  uint32_t epilogue = 1;
  const void* bias = nullptr;
};

struct Layout {
  int type;
  uint64_t rows, cols;
  int64_t pitch;
};

struct Preference {
  uint32_t reductions = 7;
  uint32_t alignment = 256;
};

// Deliberately unaligned, except for the alignment that the interface promises.
struct Algorithm {
  uint64_t mark;
  uint64_t rows, cols, depth;  // what it was chosen for
};
constexpr uint64_t kMark = 0x67656d6d;

std::string fault() {
  const char* name = std::getenv("FAKE_GEMM");
  return name ? name : "";
}

float value_at(const void* data, int type, uint64_t index) {
  if (type == 0) return static_cast<const float*>(data)[index];
  const uint16_t code = static_cast<const uint16_t*>(data)[index];
  return type == 2 ? f16_to_float(code) : bf16_to_float(code);
}

void put_at(void* data, int type, uint64_t index, float x) {
  if (type == 0) {
    static_cast<float*>(data)[index] = x;
  } else {
    static_cast<uint16_t*>(data)[index] = type == 2 ? f16_from_float(x) : bf16_from_float(x);
  }
}

// Whether the operands fit the description that an algorithm was chosen for: result = a' b, by
// columns.
bool fits(const Operation& operation, const Layout& a, const Layout& b, const Layout& c) {
  const auto dense = [](const Layout& of) { return of.pitch == static_cast<int64_t>(of.rows); };
  const bool types = a.type == b.type && (c.type == a.type || c.type == 0);
  return operation.transpose_a == kTranspose && types && dense(a) && dense(b) && dense(c) &&
         a.rows == b.rows && a.cols == c.rows && b.cols == c.cols;
}

}  // namespace

extern "C" {
std::atomic<int> fake_gemm_choices{0};
std::atomic<int> fake_gemm_products{0};
}

#if defined(FAKE_HIPBLASLT)
EXPORT int hipblasLtGetVersion(void*, int* version) {
  *version = 100203;
  return kOk;
}
#else
EXPORT size_t cublasLtGetVersion() {
  return 130102;
}
#endif

EXPORT int NAME(Create)(void** handle) {
  if (fault() == "create") return 1;
  *handle = new int(1);
  return kOk;
}

EXPORT int NAME(Destroy)(void* handle) {
  delete static_cast<int*>(handle);
  return kOk;
}

EXPORT int NAME(MatmulDescCreate)(void** operation, int compute, int scale) {
  if (compute != kCompute32 || scale != 0) return kInvalid;
  *operation = new Operation;
  return kOk;
}

EXPORT int NAME(MatmulDescDestroy)(void* operation) {
  delete static_cast<Operation*>(operation);
  return kOk;
}

EXPORT int NAME(MatmulDescSetAttribute)(void* of, int attribute, const void* value, size_t bytes) {
  auto& operation = *static_cast<Operation*>(of);
  if (attribute == kTransA && bytes == 4) {
    std::memcpy(&operation.transpose_a, value, 4);
  } else if (attribute == kEpilogue && bytes == 4) {
    std::memcpy(&operation.epilogue, value, 4);
  } else if (attribute == kBias && bytes == sizeof(void*)) {
    std::memcpy(&operation.bias, value, bytes);
  } else {
    return kInvalid;
  }
  return kOk;
}

EXPORT int NAME(MatrixLayoutCreate)(void** layout, int type, uint64_t rows, uint64_t cols,
                                    int64_t pitch) {
  if (type != 0 && type != 2 && type != 14) return kInvalid;
  *layout = new Layout{type, rows, cols, pitch};
  return kOk;
}

EXPORT int NAME(MatrixLayoutDestroy)(void* layout) {
  delete static_cast<Layout*>(layout);
  return kOk;
}

EXPORT int NAME(MatmulPreferenceCreate)(void** preference) {
  *preference = new Preference;
  return kOk;
}

EXPORT int NAME(MatmulPreferenceDestroy)(void* preference) {
  delete static_cast<Preference*>(preference);
  return kOk;
}

EXPORT int NAME(MatmulPreferenceSetAttribute)(void* of, int attribute, const void* value,
                                              size_t bytes) {
#if defined(FAKE_HIPBLASLT)
  static_cast<void>(of);
  static_cast<void>(value);
  return attribute == kWorkspace && bytes == 8 ? kOk : kInvalid;
#else
  auto& preference = *static_cast<Preference*>(of);
  if (bytes != 4 || attribute == kWorkspace) return kInvalid;
  if (attribute == kReductions) {
    std::memcpy(&preference.reductions, value, 4);
  } else if (attribute >= kAlignmentA && attribute <= kAlignmentD) {
    std::memcpy(&preference.alignment, value, 4);
  } else {
    return kInvalid;
  }
  return kOk;
#endif
}

EXPORT int NAME(MatmulAlgoGetHeuristic)(void*, void* operation, void* a, void* b, void* c, void* d,
                                        void* of, int wanted, void* results, int* found) {
  ++fake_gemm_choices;
  const Layout& result = *static_cast<Layout*>(d);
  *found = 0;
  if (wanted != 1 || c != d ||
      !fits(*static_cast<Operation*>(operation), *static_cast<Layout*>(a), *static_cast<Layout*>(b),
            result)) {
    return kInvalid;
  }
  const Operation& asked = *static_cast<Operation*>(operation);
  if (asked.epilogue == 4 && !asked.bias) return kNotSupported;
  if (fault() == "narrow" && result.rows < 32) return kNotSupported;
#if !defined(FAKE_HIPBLASLT)
  const Preference& preference = *static_cast<Preference*>(of);
  if (preference.reductions != 0 || preference.alignment != 16) return kNotSupported;
#else
  static_cast<void>(of);
#endif
  const Algorithm algorithm{kMark, result.rows, result.cols, static_cast<Layout*>(a)->rows};
  std::memcpy(results, &algorithm, sizeof(algorithm));
  *found = 1;
  return kOk;
}

EXPORT int NAME(Matmul)(void*, void* of, const void* alpha, const void* a, void* a_layout,
                        const void* b, void* b_layout, const void* beta, const void* c,
                        void* c_layout, void* d, void* d_layout, const void* chosen,
                        void* workspace, size_t workspace_bytes, void* /*stream*/) {
  ++fake_gemm_products;
  if (fault() == "matmul") return 13;
  const auto& operation = *static_cast<Operation*>(of);
  const auto& left = *static_cast<Layout*>(a_layout);
  const auto& right = *static_cast<Layout*>(b_layout);
  const auto& result = *static_cast<Layout*>(d_layout);
  Algorithm algorithm;
  std::memcpy(&algorithm, chosen, sizeof(algorithm));
  for (const void* each : {a, b, c, static_cast<const void*>(d)}) {
    if (reinterpret_cast<uintptr_t>(each) % 16 != 0) return kInvalid;
  }
  if (algorithm.mark != kMark || algorithm.rows != result.rows || algorithm.depth != left.rows ||
      !fits(operation, left, right, result) || c_layout != d_layout || c != d || workspace ||
      workspace_bytes != 0 || *static_cast<const float*>(alpha) != 1.0f) {
    return kInvalid;
  }
  const bool has_bias = operation.epilogue == 4;
  const float keep = *static_cast<const float*>(beta);
  const uint64_t chunk = 3 + algorithm.cols % 5;
  for (uint64_t col = 0; col < result.cols; ++col) {
    for (uint64_t row = 0; row < result.rows; ++row) {
      float sum = 0;
      for (uint64_t first = 0; first < left.rows; first += chunk) {
        float part = 0;
        for (uint64_t i = first; i < left.rows && i < first + chunk; ++i) {
          part += value_at(a, left.type, row * left.rows + i) *
                  value_at(b, right.type, col * right.rows + i);
        }
        sum += part;
      }
      if (has_bias) sum += value_at(operation.bias, result.type, row);
      const uint64_t at = col * result.rows + row;
      if (keep != 0) sum += keep * value_at(c, result.type, at);
      put_at(d, result.type, at, sum);
    }
  }
  return kOk;
}
