#include "actors/planned_device.h"

#include "base/log.h"
#include "kernels/device_module.h"
#include "kernels/product.h"

namespace troupe::actors {

Result<std::shared_ptr<kernels::ComputeDevice>> open_planned_device(const Plan& plan, const std::string& actor) {
  const PlannedActor* self = find_actor(plan, actor);
  if (self == nullptr || self->devices.empty()) return std::shared_ptr<kernels::ComputeDevice>();
  TROUPE_ASSIGN(auto opened, kernels::open_device(static_cast<int>(self->devices.front())));
  // operands stay bf16 there; the kernels of a GPU add in f32 either way
  set_product_form(ProductForm::native);
  log::info("{} computes on device {}", actor, self->devices.front());
  return std::make_shared<kernels::ComputeDevice>(std::move(opened));
}

}  // namespace troupe::actors
