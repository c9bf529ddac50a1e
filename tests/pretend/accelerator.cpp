// A pretend accelerator: PyTorch's PrivateUse1 backend with the host's memory and the CPU's arithmetic, as strict about devices as CUDA.
//
// What PyTorch composes of other operations runs as on any device; what it does not falls back to the CPU, after a check of devices that
// follows PyTorch's own table of operations (native_functions.yaml), of which build.py makes no_device_check.inc.
#include <pthread.h>
#include <atomic>
#include <cstring>
#include <string>
#include <unordered_set>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

namespace {

constexpr auto TYPE = c10::DeviceType::PrivateUse1;
const char* const SAME = "Expected all tensors to be on the same device, but ";

c10::Device the_device() { return {TYPE, 0}; }

// ---------------------------------------------------------------------------------------------------------------------------- memory

std::atomic<int64_t> allocated{0}, most{0};
// As CUDA's, a context does not survive a fork.
std::atomic<bool> in_use{false}, forked{false};

void use() {
  TORCH_CHECK(!forked, "Cannot re-initialize pretend in forked subprocess. To use it with multiprocessing, you must use the 'spawn' start method");
  if (!in_use.exchange(true)) pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

struct Block {
  void* data;
  int64_t size;
};

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  allocated -= block->size;
  c10::free_cpu(block->data);
  delete block;
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    use();
    if (size == 0) return {nullptr, the_device()};
    auto* block = new Block{c10::alloc_cpu(size), static_cast<int64_t>(size)};
    const int64_t now = allocated += block->size;
    for (int64_t before = most; before < now && !most.compare_exchange_weak(before, now);) {}
    return {block->data, block, &release, the_device()};
  }
  void copy_data(void* to, const void* from, std::size_t size) const override { std::memcpy(to, from, size); }
};

Allocator allocator;
REGISTER_ALLOCATOR(TYPE, &allocator);

// -------------------------------------------------------------------------------------------------------------- streams, random numbers

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, the_device()); }
  c10::DeviceType type() const override { return TYPE; }
  c10::Device exchangeDevice(c10::Device) const override { return the_device(); }
  c10::Device getDevice() const override { return the_device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int = 0) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const override { return stream(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// A generator of the device, which draws as one of the CPU does.
struct Generator final : c10::GeneratorImpl {
  at::Generator cpu = at::detail::createCPUGenerator();
  Generator() : c10::GeneratorImpl(the_device(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  void set_current_seed(uint64_t seed) override { cpu.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { cpu.set_offset(offset); }
  uint64_t get_offset() const override { return cpu.get_offset(); }
  uint64_t current_seed() const override { return cpu.current_seed(); }
  uint64_t seed() override { return cpu.seed(); }
  void set_state(const c10::TensorImpl& state) override { cpu.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return cpu.unsafeGetGeneratorImpl()->get_state(); }
  Generator* clone_impl() const override {
    auto* copy = new Generator();
    copy->cpu = cpu.clone();
    return copy;
  }
};

const at::Generator& default_generator() {
  static const at::Generator made = at::make_generator<Generator>();
  return made;
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return in_use; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::make_generator<Generator>(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return default_generator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    at::native::resize_bytes_nocuda(storage, size);
  }
};

const bool hooked = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

// -------------------------------------------------------------------------------------------------------------- tensors and their views

Tensor make(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>, std::optional<c10::Device>,
            std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype), format);
}

Tensor make_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                    std::optional<c10::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

// A tensor of the CPU over the same memory.
Tensor on_cpu(const Tensor& t) {
  if (!t.defined() || t.is_cpu()) return t;
  const auto items = static_cast<int64_t>(t.storage().nbytes() / t.dtype().itemsize());
  auto all = at::from_blob(const_cast<void*>(t.storage().data()), {items}, at::TensorOptions(t.dtype()).device(at::kCPU));
  return all.as_strided(t.sizes(), t.strides(), t.storage_offset());
}

Tensor on_device(const Tensor& t) { return t.defined() ? t.to(the_device()) : t; }

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  use();
  on_cpu(to).copy_(on_cpu(from));
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

c10::Scalar number(const Tensor& t) { return on_cpu(t).item(); }

Tensor strided(const Tensor& t, c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<c10::SymInt> offset) {
  auto begin = offset ? std::optional<int64_t>(offset->expect_int()) : std::nullopt;
  return at::cpu::as_strided(t, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), begin);
}

Tensor view(const Tensor& t, c10::SymIntArrayRef size) { return at::native::view(t, C10_AS_INTARRAYREF_SLOW(size)); }

Tensor reshape_alias(const Tensor& t, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(t, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

const Tensor& resize(const Tensor& t, c10::SymIntArrayRef size, std::optional<c10::MemoryFormat> format) {
  return at::native::resize_(t, C10_AS_INTARRAYREF_SLOW(size), format);
}

Tensor& set_storage(Tensor& t, c10::Storage storage, c10::SymInt offset, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  TORCH_CHECK(storage.device_type() == TYPE, "Attempted to set the storage of a tensor on device \"", the_device(),
              "\" to a storage on different device \"", storage.device(), "\".");
  return at::cpu::set_(t, storage, offset.expect_int(), C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

Tensor& set_whole_storage(Tensor& t, c10::Storage storage) {
  const auto items = c10::SymInt(static_cast<int64_t>(storage.nbytes() / t.dtype().itemsize()));
  return set_storage(t, storage, 0, {items}, {});
}

// ------------------------------------------------------------------------------------------ what PyTorch asks of a device in other words

void check_all(const char* operation, std::initializer_list<Tensor> tensors) {
  for (const auto& t : tensors)
    TORCH_CHECK(!t.defined() || t.device() == the_device(), SAME, "got a tensor on ", t.device(), ", different from other tensors on ",
                the_device(), " (when checking argument in method ", operation, ")");
}

Tensor convolution(const Tensor& input, const Tensor& weight, const OptionalTensor& bias, c10::IntArrayRef stride, c10::IntArrayRef padding,
                   c10::IntArrayRef dilation, bool transposed, c10::IntArrayRef output_padding, int64_t groups) {
  check_all("convolution", {input, weight, bias.value_or(Tensor())});
  const auto b = bias ? OptionalTensor(on_cpu(*bias)) : OptionalTensor();
  return on_device(at::convolution(on_cpu(input), on_cpu(weight), b, stride, padding, dilation, transposed, output_padding, groups));
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, c10::IntArrayRef stride,
                                                        c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
                                                        c10::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  check_all("convolution_backward", {grad, input, weight});
  const int64_t outputs = transposed ? weight.size(1) * groups : weight.size(0);
  auto [a, b, c] = at::convolution_backward(on_cpu(grad), on_cpu(input), on_cpu(weight), c10::IntArrayRef({outputs}), stride, padding,
                                            dilation, transposed, output_padding, groups, wanted);
  return {on_device(a), on_device(b), on_device(c)};
}

// The gates of a recurrent cell, which CUDA computes in one kernel. The workspace is what the way back needs.
Tensor with(const Tensor& gates, const OptionalTensor& bias) { return bias && bias->defined() ? gates + *bias : gates; }

std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cell,
                                             const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  check_all("_thnn_fused_lstm_cell", {input_gates, hidden_gates, cell, input_bias.value_or(Tensor()), hidden_bias.value_or(Tensor())});
  const auto gates = (with(input_gates, input_bias) + with(hidden_gates, hidden_bias)).chunk(4, 1);
  const auto i = gates[0].sigmoid(), f = gates[1].sigmoid(), g = gates[2].tanh(), o = gates[3].sigmoid();
  const auto next = f * cell + i * g;
  return {o * next.tanh(), next, at::cat({i, f, g, o}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& grad_hidden, const OptionalTensor& grad_cell, const Tensor& cell,
                                                      const Tensor& next, const Tensor& workspace, bool has_bias) {
  const auto gates = workspace.chunk(4, 1);
  const auto &i = gates[0], &f = gates[1], &g = gates[2], &o = gates[3];
  const auto squashed = next.tanh();
  const auto hidden = grad_hidden && grad_hidden->defined() ? *grad_hidden : at::zeros_like(next);
  auto total = hidden * o * (1 - squashed * squashed);
  if (grad_cell && grad_cell->defined()) total = total + *grad_cell;
  const auto grads = at::cat({total * g * i * (1 - i), total * cell * f * (1 - f), total * i * (1 - g * g), hidden * squashed * o * (1 - o)}, 1);
  return {grads, total * f, has_bias ? grads.sum(0) : Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hidden, const OptionalTensor& input_bias,
                                    const OptionalTensor& hidden_bias) {
  check_all("_thnn_fused_gru_cell", {input_gates, hidden_gates, hidden, input_bias.value_or(Tensor()), hidden_bias.value_or(Tensor())});
  const auto x = with(input_gates, input_bias).chunk(3, 1), h = with(hidden_gates, hidden_bias).chunk(3, 1);
  const auto reset = (x[0] + h[0]).sigmoid(), update = (x[1] + h[1]).sigmoid(), fresh = (x[2] + reset * h[2]).tanh();
  return {fresh + update * (hidden - fresh), at::cat({reset, update, fresh, hidden, h[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad, const Tensor& workspace, bool has_bias) {
  const auto kept = workspace.chunk(5, 1);
  const auto &reset = kept[0], &update = kept[1], &fresh = kept[2], &hidden = kept[3], &hidden_gate = kept[4];
  const auto by_fresh = grad * (1 - update) * (1 - fresh * fresh);
  const auto by_update = grad * (hidden - fresh) * update * (1 - update);
  const auto by_reset = by_fresh * hidden_gate * reset * (1 - reset);
  const auto input = at::cat({by_reset, by_update, by_fresh}, 1), before = at::cat({by_reset, by_update, by_fresh * reset}, 1);
  return {input, before, grad * update, has_bias ? input.sum(0) : Tensor(), has_bias ? before.sum(0) : Tensor()};
}

// ------------------------------------------------------------------------------------------------------------------ everything else

const std::unordered_set<std::string>& without_check() {
  static const std::unordered_set<std::string> names = {
#include "no_device_check.inc"
  };
  return names;
}

// An operation whose table entry says "no check" looks at devices itself: nearly all let numbers of the CPU (tensors without dimensions)
// pass, as the iterator over elements does, and no mask; those that take indices move them from the CPU.
struct Rule {
  std::string name;
  bool lenient, by_index;

  explicit Rule(const c10::FunctionSchema& schema) : name(schema.name().substr(schema.name().find("::") + 2)) {
    lenient = without_check().count(schema.overload_name().empty() ? name : name + "." + schema.overload_name()) > 0;
    by_index = lenient && name.find("index") != std::string::npos;
  }

  void look(const Tensor& t, const c10::Argument& argument) const {
    if (!t.defined() || t.device() == the_device()) return;
    if (by_index && argument.name() == "indices" && t.is_cpu()) return;
    const bool written = argument.alias_info() && argument.alias_info()->isWrite();
    if (lenient && t.is_cpu() && t.dim() == 0 && !written && argument.name() != "mask") return;
    TORCH_CHECK(!(by_index && argument.name() == "self"), "indices should be either on cpu or on the same device as the indexed tensor (",
                t.device(), ")");
    TORCH_CHECK(!lenient, SAME, "found at least two devices, ", the_device(), " and ", t.device(), "! (", name, ")");
    TORCH_CHECK(false, SAME, "got ", argument.name(), " is on ", t.device(), ", different from other tensors on ", the_device(),
                " (when checking argument in method ", name, ")");
  }
};

c10::IValue cpu_generator(const c10::IValue& given) {
  const auto generator = given.isNone() ? default_generator() : given.toGenerator();
  TORCH_CHECK(generator.device().type() == TYPE, "Expected a 'pretend' device type for generator but found '", generator.device().type(), "'");
  return static_cast<Generator*>(generator.unsafeGetGeneratorImpl())->cpu;
}

// PyTorch puts results on the device of the first tensor, which may be a number of the CPU.
Tensor moved(const Tensor& t) {
  if (!t.defined() || !t.is_cpu() || t.dim() != 0) return t;
  auto copy = on_device(t);
  copy.unsafeGetTensorImpl()->set_wrapped_number(t.unsafeGetTensorImpl()->is_wrapped_number());
  return copy;
}

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const Rule rule(schema);
  const auto& arguments = schema.arguments();
  const auto first = stack->size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& value = (*stack)[first + i];
    const auto& type = arguments[i].type();
    if (value.isTensor()) {
      rule.look(value.toTensor(), arguments[i]);
      value = moved(value.toTensor());
    } else if (value.isTensorList()) {
      for (const auto& t : value.toTensorVector()) rule.look(t, arguments[i]);
    } else if (value.isOptionalTensorList()) {
      for (const OptionalTensor& t : value.toOptionalTensorVector()) rule.look(t.value_or(Tensor()), arguments[i]);
    } else if (value.isGenerator() || type->str() == "Generator?") {
      value = cpu_generator(value);
    }
  }
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", make);
  library.impl("empty_strided", make_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("_local_scalar_dense", number);
  library.impl("as_strided", strided);
  library.impl("view", view);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("unfold", at::native::unfold);
  library.impl("resize_", resize);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Storage", set_whole_storage);
  library.impl("set_.source_Tensor", at::native::set_tensor_);
  library.impl("convolution_overrideable", convolution);
  library.impl("convolution_backward_overrideable", convolution_backward);
  library.impl("_thnn_fused_lstm_cell", lstm_cell);
  library.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
  library.impl("_thnn_fused_gru_cell", gru_cell);
  library.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>()); }

TORCH_LIBRARY(pretend, library) {
  library.def("get_rng_state", [] { return default_generator().get_state(); });
  library.def("set_rng_state", [](const Tensor& state) { at::Generator(default_generator()).set_state(state); });
}

}  // namespace

extern "C" {
void pretend_seed(uint64_t seed) { at::Generator(default_generator()).set_current_seed(seed); }
int64_t pretend_memory_allocated() { return allocated; }
int64_t pretend_max_memory_allocated() { return most; }
void pretend_reset_peak_memory_stats() { most = allocated.load(); }
bool pretend_is_initialized() { return in_use; }
bool pretend_is_in_bad_fork() { return forked; }
}
