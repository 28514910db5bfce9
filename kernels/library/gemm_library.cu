#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/library/gemm_library.h"

#if defined(__CUDACC__) && __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace fp8kv::FP8KV_GPU {

static_assert(kCublasLt.compute_f32 == CUBLAS_COMPUTE_32F);
static_assert(kCublasLt.transposed == CUBLAS_OP_T);
static_assert(kCublasLt.transpose_a == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(kCublasLt.epilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(kCublasLt.bias_pointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(kCublasLt.reductions == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(kCublasLt.alignments[0] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(kCublasLt.alignments[3] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(kEpilogueBias == CUBLASLT_EPILOGUE_BIAS && kTypeF32 == CUDA_R_32F &&
              kTypeF16 == CUDA_R_16F && kTypeBf16 == CUDA_R_16BF);
static_assert(CUBLASLT_REDUCTION_SCHEME_NONE == 0 && CUBLAS_STATUS_SUCCESS == 0);
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) <= 256 &&
              offsetof(cublasLtMatmulHeuristicResult_t, algo) == 0);
static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int) &&
              sizeof(cublasLtMatmulDescAttributes_t) == sizeof(int));

}  // namespace fp8kv::FP8KV_GPU
#endif

namespace fp8kv::FP8KV_GPU {
namespace {

// Steps computed as this many rows or more share one algorithm, chosen for kManyRows. Prompts and
// windows are computed as 512 rows (kPromptStep), but steps with many more rows take most of the
// time.
constexpr int64_t kPromptRows = 512;
constexpr int64_t kManyRows = 4096;
constexpr uint32_t kAlignment = 16;

int type_of(DType dtype) {
  return dtype == DType::f16 ? kTypeF16 : dtype == DType::bf16 ? kTypeBf16 : kTypeF32;
}

template <typename Function>
void find(void* file, const std::string& name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(file, name.c_str()));
  if (!function) throw Error(cat("has no ", name), "", ErrorKind::device);
}

GemmFunctions find_functions(void* file, const std::string& prefix) {
  GemmFunctions f;
  find(file, prefix + "Create", f.Create);
  find(file, prefix + "Destroy", f.Destroy);
  find(file, prefix + "MatmulDescCreate", f.MatmulDescCreate);
  find(file, prefix + "MatmulDescDestroy", f.MatmulDescDestroy);
  find(file, prefix + "MatmulDescSetAttribute", f.MatmulDescSetAttribute);
  find(file, prefix + "MatrixLayoutCreate", f.MatrixLayoutCreate);
  find(file, prefix + "MatrixLayoutDestroy", f.MatrixLayoutDestroy);
  find(file, prefix + "MatmulPreferenceCreate", f.MatmulPreferenceCreate);
  find(file, prefix + "MatmulPreferenceDestroy", f.MatmulPreferenceDestroy);
  find(file, prefix + "MatmulPreferenceSetAttribute", f.MatmulPreferenceSetAttribute);
  find(file, prefix + "MatmulAlgoGetHeuristic", f.MatmulAlgoGetHeuristic);
  find(file, prefix + "Matmul", f.Matmul);
  return f;
}

// cublasLt numbers its versions 10000 * major + 100 * minor + patch, hipBLASLt with 100000.
std::string version_of(void* file, void* handle) {
  uint64_t version = 0, major = 10000;
  if (kWarp == 32) {
    if (const auto get = reinterpret_cast<size_t (*)()>(dlsym(file, "cublasLtGetVersion"))) {
      version = get();
    }
  } else {
    const auto get = reinterpret_cast<int (*)(void*, int*)>(dlsym(file, "hipblasLtGetVersion"));
    int number = 0;
    if (get && get(handle, &number) == 0) version = static_cast<uint64_t>(number);
    major = 100000;
  }
  if (version == 0) return "of unknown version";
  return cat(version / major, ".", version % major / 100, ".", version % 100);
}

}  // namespace

GemmLibrary::GemmLibrary() {
  const char* wanted = std::getenv("FP8KV_GEMM");
  if (wanted && std::string(wanted) == "own") {
    description_ = "own kernels, as FP8KV_GEMM says";
    return;
  }
  if (wanted && *wanted) {
    open(wanted);
    if (!file_) {
      throw Error(cat("FP8KV_GEMM: ", description_),
                  "name a file of the library, or 'own' for the project's own kernels",
                  ErrorKind::device);
    }
    return;
  }
  if (!has_gemm_library()) {
    description_ = "own kernels: a simulated device has no library";
    return;
  }
  std::string reason;
  for (const char* name : kGemmDialect.files) {
    open(name);
    if (file_) return;
    if (reason.empty()) reason = description_;
  }
  description_ = cat("own kernels: ", reason);
}

// If there is no such file, leaves file_ null and the reason in description_. Throws if the file
// exists and cannot be used.
void GemmLibrary::open(const std::string& file) {
  void* opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    description_ = dlerror();
    return;
  }
  with_context(file, [&] {
    functions_ = find_functions(opened, kGemmDialect.prefix);
    check(functions_.Create(&handle_), "cannot begin");
  });
  file_ = opened;
  description_ = cat(kGemmDialect.name, " ", version_of(opened, handle_));
}

GemmLibrary::~GemmLibrary() {
  if (!handle_) return;
  for (const auto& [shape, plan] : plans_) {
    if (plan) functions_.MatmulDescDestroy(plan->operation);
  }
  functions_.Destroy(handle_);
}

void GemmLibrary::check(int status, const char* what) const {
  if (status == 0) return;
  throw Error(cat(kGemmDialect.name, " ", what, ": it gives status ", status),
              "run with FP8KV_GEMM=own to do without it", ErrorKind::device);
}

// Matrices by columns, as the libraries see them: result [out_dim, n] = weight' [in_dim, out_dim]
// times x [in_dim, n]. The memory is the same as that of our matrices by rows.
struct GemmLibrary::Layouts {
  Layouts(const GemmLibrary& of, DType dtype, int64_t n, int64_t in_dim, int64_t out_dim,
          bool out_f32)
      : library(of) {
    weight = make(type_of(dtype), in_dim, out_dim);
    x = make(type_of(dtype), in_dim, n);
    out = make(out_f32 ? kTypeF32 : type_of(dtype), out_dim, n);
  }
  ~Layouts() {
    for (void* each : made) library.functions_.MatrixLayoutDestroy(each);
  }
  Layouts(const Layouts&) = delete;
  Layouts& operator=(const Layouts&) = delete;

  void* make(int type, int64_t rows, int64_t cols) {
    void* layout = nullptr;
    library.check(library.functions_.MatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                                        static_cast<uint64_t>(cols), rows),
                  "cannot describe a matrix");
    made.push_back(layout);
    return layout;
  }

  const GemmLibrary& library;
  std::vector<void*> made;
  void *weight, *x, *out;
};

// Chooses an algorithm; nothing if the library has none. The algorithm may use no workspace and no
// reductions. So every sum is added up in one place, in an order that depends on the algorithm
// alone.
std::optional<GemmLibrary::Plan> GemmLibrary::choose(const Shape& shape) const {
  Plan plan;
  check(functions_.MatmulDescCreate(&plan.operation, kGemmDialect.compute_f32, kTypeF32),
        "cannot describe a product");
  const auto destroy_operation = [this](void* operation) {
    functions_.MatmulDescDestroy(operation);
  };
  std::unique_ptr<void, decltype(destroy_operation)> operation(plan.operation, destroy_operation);
  const auto set = [&](int attribute, const auto& value) {
    check(functions_.MatmulDescSetAttribute(plan.operation, attribute, &value, sizeof(value)),
          "cannot describe a product");
  };
  set(kGemmDialect.transpose_a, int32_t{kGemmDialect.transposed});
  if (shape.bias) {
    set(kGemmDialect.epilogue, uint32_t{kEpilogueBias});
    // hipBLASLt finds no algorithm for a bias at null. Nobody reads this address; run() sets the
    // real one.
    set(kGemmDialect.bias_pointer, static_cast<const void*>(plan.algorithm));
  }
  const Layouts layouts(*this, shape.dtype, shape.rows, shape.in_dim, shape.out_dim, shape.out_f32);

  void* preference = nullptr;
  check(functions_.MatmulPreferenceCreate(&preference), "cannot be asked");
  const auto destroy_preference = [this](void* made) { functions_.MatmulPreferenceDestroy(made); };
  const std::unique_ptr<void, decltype(destroy_preference)> owner(preference, destroy_preference);
  const auto prefer = [&](int attribute, uint32_t value) {
    if (attribute == kNoAttribute) return;
    check(functions_.MatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
          "cannot be asked");
  };
  prefer(kGemmDialect.reductions, 0);
  for (const int attribute : kGemmDialect.alignments) prefer(attribute, kAlignment);

  int found = 0;
  const int status = functions_.MatmulAlgoGetHeuristic(handle_, plan.operation, layouts.weight,
                                                       layouts.x, layouts.out, layouts.out,
                                                       preference, 1, plan.algorithm, &found);
  if (status != 0 || found == 0) return std::nullopt;
  static_cast<void>(operation.release());
  return plan;
}

const GemmLibrary::Plan* GemmLibrary::plan(const Shape& shape) {
  auto at = plans_.find(shape);
  if (at == plans_.end()) at = plans_.emplace(shape, choose(shape)).first;
  return at->second ? &*at->second : nullptr;
}

void GemmLibrary::run(Stream stream, const Plan& plan, DType dtype, const Products& products,
                      const Product& product) const {
  if (product.bias) {
    check(functions_.MatmulDescSetAttribute(plan.operation, kGemmDialect.bias_pointer,
                                            &product.bias, sizeof(product.bias)),
          "cannot describe a product");
  }
  const Layouts layouts(*this, dtype, products.n, products.in_dim, product.out_dim,
                        product.out_f32);
  const float one = 1.0f, beta = product.accumulate ? 1.0f : 0.0f;
  check(functions_.Matmul(handle_, plan.operation, &one, product.weight, layouts.weight, products.x,
                          layouts.x, &beta, product.out, layouts.out, product.out, layouts.out,
                          plan.algorithm, nullptr, 0, stream.handle),
        "cannot multiply");
}

bool GemmLibrary::multiply(Stream stream, DType dtype, const Products& products, int64_t rows) {
  if (!file_) return false;
  const Plan* plans[kMaxProducts];
  for (int i = 0; i < products.count; ++i) {
    const Product& product = products.each[i];
    // Versions disagree on the type of a bias for f32 results of 16-bit products.
    if (product.bias && product.out_f32 && dtype != DType::f32) return false;
    plans[i] = plan({.dtype = dtype,
                     .rows = rows >= kPromptRows ? kManyRows : rows,
                     .in_dim = products.in_dim,
                     .out_dim = product.out_dim,
                     .bias = product.bias != nullptr,
                     .out_f32 = product.out_f32});
    if (!plans[i]) return false;
  }
  for (int i = 0; i < products.count; ++i) {
    submit("linear", stream,
           [=, this] { run(stream, *plans[i], dtype, products, products.each[i]); });
  }
  return true;
}

}  // namespace fp8kv::FP8KV_GPU
