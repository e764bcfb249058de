#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::model {

/// A loss whose gradients estimate the diagonal of the Hessian of a sum of squared errors
///     L = sum_i c_i (f_i - y_i)^2
/// in its Gauss-Newton form, H = sum_i 2 c_i (df_i/dtheta)^2 (Gauss-Newton-Bartlett, arXiv:2305.14342 section 2.3).
/// With L as a negative log-likelihood each target is normal around its prediction, variance 1 / (2 c_i). A target
/// drawn from it is y_i = f_i - eps_i / sqrt(2 c_i), and with the targets held fixed
///     dL/dtheta = sum_i sqrt(2 c_i) eps_i df_i/dtheta
/// whose square has the mean H. This returns sum_i sqrt(2 c_i) eps_i f_i, which has that gradient; its value means
/// nothing. Where one gradient is the mean over M such losses, M times its square estimates the Hessian of their mean.
///
/// Shapes: prediction and noise of one shape, noise standard normal; coefficients c, not below 0, broadcast to it.
/// Summed in f32 (f64 where the prediction is). Errors: throws c10::Error on a shape mismatch.
at::Tensor sampled_label_loss(const at::Tensor& prediction, const at::Tensor& coefficients, const at::Tensor& noise);

/// sqrt(2 c_i) eps_i, what predictions are multiplied by there: like noise, in f32 (f64 where the coefficients are).
at::Tensor sampled_label_seed(const at::Tensor& coefficients, const at::Tensor& noise);

}  // namespace troupe::model
