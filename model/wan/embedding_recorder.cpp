#include "model/wan/embedding_recorder.h"

namespace troupe::model {

ValueId EmbeddingRecorder::patches(ValueId x) {
  return record_linear(layers_.graph(), x, layers_.parameter("patch_embedding.weight"),
                       layers_.parameter("patch_embedding.bias"));
}

ValueId EmbeddingRecorder::actions(ValueId x, ValueId sinusoid) {
  const auto u = layers_.category_linear("action_encoder.W1", x);
  const auto joined = record_join_channels(layers_.graph(), u, sinusoid);
  return layers_.category_linear("action_encoder.W3",
                                 activated(layers_.category_linear("action_encoder.W2", joined), Activation::silu));
}

ValueId EmbeddingRecorder::states(ValueId x) {
  const auto hidden = layers_.category_linear("state_encoder.layer1", x);
  return layers_.category_linear("state_encoder.layer2", activated(hidden, Activation::relu));
}

ValueId EmbeddingRecorder::text(ValueId x) {
  const auto hidden = layers_.linear("text_embedding.0", x);
  return layers_.linear("text_embedding.2", activated(hidden, Activation::gelu_tanh));
}

ValueId EmbeddingRecorder::image(ValueId x) {
  const auto normed = layers_.layer_norm("img_emb.proj.0", x, kImageEps);
  const auto hidden = activated(layers_.linear("img_emb.proj.1", normed), Activation::gelu_erf);
  return layers_.layer_norm("img_emb.proj.4", layers_.linear("img_emb.proj.3", hidden), kImageEps);
}

ValueId EmbeddingRecorder::times(ValueId sinusoid) {
  return layers_.linear("time_embedding.2", activated(layers_.linear("time_embedding.0", sinusoid), Activation::silu));
}

ValueId EmbeddingRecorder::modulation_rows(ValueId e) {
  return layers_.linear("time_projection.1", activated(e, Activation::silu));
}

}  // namespace troupe::model
