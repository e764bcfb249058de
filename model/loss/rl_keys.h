#pragma once

namespace troupe::model {

/// Names of the tensors in a reinforcement learning Batch. N rows, each one policy call; D state, K actions of A
/// dimensions in a chunk; L log-probabilities as the policy returns them: [N,K] of discrete actions, [N,K*A] else; V
/// values: 1, or K with reward_level action. f32 unless said otherwise.
namespace rl_keys {
/// [N,D], as the policy saw it (normalised): what the actor reads, what critics read too, the action mask
/// (PolicyShape)
inline constexpr const char* kState = "obs.state";
/// + PolicyShape::Image::name: u8 or f32 [N,H,W,C]
inline constexpr const char* kImagePrefix = "obs.";
/// + PolicyShape::Text::name: u8 [N,bytes], zeros behind the text; of transitions at the next observation too
inline constexpr const char* kTextPrefix = "text.";
/// [N,K*A] in the environment's units; discrete: the index
inline constexpr const char* kAction = "action";
/// + MemoryField::name: [S,W], before the first step of each of S sequences. The N rows are then N / S steps of
/// them, step t of sequence s at t * S + s.
inline constexpr const char* kMemoryPrefix = "memory.";
/// [N,1] bool: an episode begins with this row, before which memories are zero
inline constexpr const char* kBegins = "begins";
/// + name: what a policy needs to recompute log-probabilities (PolicyNet::extras)
inline constexpr const char* kExtraPrefix = "extra.";
/// [N,L], log-probabilities of the policy that acted, at collection
inline constexpr const char* kOldLogp = "old_logp";
/// [N,L], of the proximal policy, which the decoupled loss clips against; optional
inline constexpr const char* kProximalLogp = "proximal_logp";
/// [N,L], of the reference policy that kl_beta holds the policy near
inline constexpr const char* kReferenceLogp = "reference_logp";
/// [N,V], the critic's answer at collection
inline constexpr const char* kOldValue = "old_value";
/// [N,V], as the loss uses it: normalised where the job says so
inline constexpr const char* kAdvantage = "advantage";
/// [N,V], what the critic regresses on
inline constexpr const char* kReturn = "return";
/// [N,K] bool: actions that count
inline constexpr const char* kMask = "mask";
/// [N,1]: counted control steps of the row's trajectory (aggregation trajectory)
inline constexpr const char* kValidSteps = "valid_steps";
/// [N,1] i64: of the weights that acted
inline constexpr const char* kVersion = "version";
/// scalar i64: version that this update makes
inline constexpr const char* kTrainedVersion = "trained_version";
/// [2]: {parts / valid cells, parts / cells} of the whole minibatch on all ranks, parts = micro-batches x ranks: the
/// mean over parts is then the mean over the minibatch (model/loss/aggregation.h)
inline constexpr const char* kLossScale = "loss_scale";
/// scalar: 0 while only the critic is trained
inline constexpr const char* kPolicyWeight = "policy_weight";
/// scalar: a of flow policies (flow_weights), the level that the chains were drawn with
inline constexpr const char* kNoiseLevel = "noise_level";

// Of transitions for soft actor-critic; rewards, flags and noise are those of a whole chunk.

/// [N,1]: sum over the chunk
inline constexpr const char* kReward = "reward";
/// [N,D]: the final observation where the episode ended
inline constexpr const char* kNextState = "next.state";
/// + PolicyShape::Image::name: images of the next observation
inline constexpr const char* kNextImagePrefix = "next.";
/// [N,1]: factor of the bootstrapped value: discount, or 0 where it is cut
inline constexpr const char* kContinues = "continues";
/// [N,K*A] standard normal, of the actor's sample at the state
inline constexpr const char* kActionNoise = "noise.action";
/// [N,K*A], of the sample at the next state
inline constexpr const char* kNextNoise = "noise.next";
/// i64 [M]: target networks that count (REDQ), optional
inline constexpr const char* kSubset = "subset";
}  // namespace rl_keys

}  // namespace troupe::model
