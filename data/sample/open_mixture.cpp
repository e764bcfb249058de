#include "data/sample/open_mixture.h"

#include "data/sample/sample.h"

namespace troupe::data {

Result<std::shared_ptr<const Mixture>> open_mixture(const JobConfig& job) {
  TROUPE_TRY(sample_layout(job.data, job.model));
  return Mixture::open(job.data, job.model);
}

}  // namespace troupe::data
