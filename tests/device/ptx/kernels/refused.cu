// Outside the supported set: its loading must fail and name the instruction and this line.
namespace troupe::device::ptx {

extern "C" __global__ void sum_of_floats(float* out) {
  atomicAdd(out, 1.0f);  // refused: error
}

}  // namespace troupe::device::ptx
