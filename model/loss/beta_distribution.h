#pragma once

namespace troupe::model {

/// P(X <= x) of the Beta(a, b) distribution: the regularised incomplete beta function I_x(a, b), by its continued
/// fraction; a, b > 0. About 1e-13 absolute.
double beta_cdf(double x, double a, double b);

/// The x with beta_cdf(x, a, b) = u, u in (0, 1). Exact to rounding for b = 1 (u^(1/a)) and a = 1 (1 - (1 - u)^(1/b)),
/// else by bisection down to neighbouring doubles. A fixed function of its arguments: one draw u gives one draw of the
/// distribution, so keyed uniforms make keyed Beta draws.
double beta_quantile(double u, double a, double b);

}  // namespace troupe::model
