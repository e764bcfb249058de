#pragma once

#include "model/program/operations.h"
#include "model/wan/dit_parts.h"
#include "model/wan/layer_recorder.h"

namespace troupe::model {

/// Records what turns inputs into tokens and conditioning: embed_patches, embed_actions, embed_states, embed_text and
/// embed_image of model/wan/dit_parts.h with the same roundings, and the embedding of timesteps. Shape legend there.
class EmbeddingRecorder {
 public:
  /// `layers` outlives it.
  explicit EmbeddingRecorder(LayerRecorder& layers) : layers_(layers) {}

  /// Of rows of 2 x 2 patches.
  ValueId patches(ValueId x);
  ValueId actions(ValueId x, ValueId sinusoid);
  ValueId states(ValueId x);
  ValueId text(ValueId x);
  ValueId image(ValueId x);
  /// e [B, R, d] of the sinusoids of R timesteps, and of that e0 [B, R, 6 d].
  ValueId times(ValueId sinusoid);
  ValueId modulation_rows(ValueId e);

 private:
  ValueId activated(ValueId u, Activation activation) { return record_activation(layers_.graph(), u, activation); }

  LayerRecorder& layers_;
};

}  // namespace troupe::model
