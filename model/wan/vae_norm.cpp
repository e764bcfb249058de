#include "model/wan/vae_norm.h"

#include <cstddef>
#include <utility>

namespace troupe::model {
namespace {

// the reference's code constants, equal to those of Wan-Video/Wan2.1 and Wan-Video/Wan2.2
const VaeNorm& wan21_norm() {
  static const VaeNorm norm{{-0.7571F, -0.7089F, -0.9113F, 0.1075F, -0.1745F, 0.9653F, -0.1517F, 1.5508F, 0.4134F,
                             -0.0715F, 0.5517F, -0.3632F, -0.1922F, -0.9497F, 0.2503F, -0.2921F},
                            {2.8184F, 1.4541F, 2.3275F, 2.6558F, 1.2196F, 1.7708F, 2.6052F, 2.0743F, 3.2687F, 2.1526F,
                             2.8652F, 1.5579F, 1.6382F, 1.1253F, 2.8251F, 1.9160F}};
  return norm;
}

const VaeNorm& wan22_norm() {
  static const VaeNorm norm{
      {-0.2289F, -0.0052F, -0.1323F, -0.2339F, -0.2799F, 0.0174F,  0.1838F,  0.1557F,  -0.1382F, 0.0542F,
       0.2813F,  0.0891F,  0.1570F,  -0.0098F, 0.0375F,  -0.1825F, -0.2246F, -0.1207F, -0.0698F, 0.5109F,
       0.2665F,  -0.2108F, -0.2158F, 0.2502F,  -0.2055F, -0.0322F, 0.1109F,  0.1567F,  -0.0729F, 0.0899F,
       -0.2799F, -0.1230F, -0.0313F, -0.1649F, 0.0117F,  0.0723F,  -0.2839F, -0.2083F, -0.0520F, 0.3748F,
       0.0152F,  0.1957F,  0.1433F,  -0.2944F, 0.3573F,  -0.0548F, -0.1681F, -0.0667F},
      {0.4765F, 1.0364F, 0.4514F, 1.1677F, 0.5313F, 0.4990F, 0.4818F, 0.5013F, 0.8158F, 1.0344F, 0.5894F, 1.0901F,
       0.6885F, 0.6165F, 0.8454F, 0.4978F, 0.5759F, 0.3523F, 0.7135F, 0.6804F, 0.5833F, 1.4146F, 0.8986F, 0.5659F,
       0.7069F, 0.5338F, 0.4889F, 0.4917F, 0.4069F, 0.4999F, 0.6866F, 0.4093F, 0.5709F, 0.6065F, 0.6415F, 0.4944F,
       0.5726F, 1.2042F, 0.5458F, 1.6887F, 0.3971F, 1.0600F, 0.3943F, 0.5537F, 0.5444F, 0.4089F, 0.7468F, 0.7744F}};
  return norm;
}

}  // namespace

std::vector<float> VaeNorm::inverse_std() const {
  std::vector<float> out;
  for (const float s : std) out.push_back(1.0F / s);
  return out;
}

VaeNorm vae_norm(const LatentCodecConfig& config) {
  const auto channels = static_cast<std::size_t>(config.channels);
  for (const auto& [type, norm] : {std::pair{"wan21", &wan21_norm()}, std::pair{"wan22", &wan22_norm()}}) {
    if (config.type == type && norm->mean.size() == channels) return *norm;
  }
  return {std::vector<float>(channels, 0.0F), std::vector<float>(channels, 1.0F)};
}

}  // namespace troupe::model
