#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace troupe::model {

/// One convolution without padding.
struct ConvolutionLayer {
  /// [out,in,k,k] and [out]
  at::Tensor weight, bias;
  std::int64_t stride = 1;
  /// relu follows
  bool has_relu = true;
};

/// Convolutions, one after the other, over pictures [N,H,W,C], u8 scaled by 1/255 or others as they are, to maps
/// [N,out,H',W'] in the dtype of the weights. Rows go in parts of 16 over the calling thread's kernel threads
/// (kernels/threads.h), forward and backward, where LibTorch's own convolution has one in learners.
///
/// Bits:  the same for any number of threads: parts are cut by N alone, and their gradients added in order.
/// Grad:  weights and biases by autograd, once; none of the pictures. Saved for backward: every layer's input and
///        output.
/// Errors: throws c10::Error on shapes that do not fit.
at::Tensor convolve_rows(const at::Tensor& pictures, const std::vector<ConvolutionLayer>& layers);

}  // namespace troupe::model
