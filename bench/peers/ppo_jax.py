"""PPO on CartPole-v1 as one compiled XLA program: simulation, policy, advantages and updates in JAX alone. A peer of loop_bench.sh.

    ppo_jax.py [--num-envs 64] [--steps 32] [--epochs 10] [--minibatches 32] [--hidden 64] [--iterations 20] [--skip 2] [--chunk 20] [--seed 1]

Numbers and losses are those of ppo_cleanrl_style.py: separate 2xHIDDEN tanh networks with orthogonal initial values, Adam with eps 1e-5 and a rate
falling to 0, clipped value loss, advantages normalised per minibatch, gradient norm 0.5, an episode's end cuts the return; observations and rewards
as they are. CartPole is Gymnasium's: the same constants and Euler step, a reward of 1 each step, ended by position or angle, cut at 500 steps, begun
anew at once. The host starts CHUNK iterations at a time, whose state stays on the device in the same buffers, and sees episodes ended and their sum.

What makes it fast on CPUs, each measured: all parameters in one array, so that Adam and the norm are one loop each; critic and log-probabilities not
while acting, but for all steps at once; random numbers of a rollout drawn at once; shuffles by one sort of keys that hold the row in their low
bits; the critic's last layer as a product of matrices; two minibatches a turn of the loop.

Prints "steps wall_seconds mean_return" of the iterations after the first SKIP, without compilation; the return is of the newest iterations in which
100 episodes ended (nan: none ended). --version prints what it runs on. Threads are XLA's: XLA_FLAGS=--xla_cpu_multi_thread_eigen=false for one.
"""
import argparse
import functools
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

GAMMA, GAE_LAMBDA, CLIP, VALUE_COEF, MAX_GRAD_NORM, LEARNING_RATE = 0.99, 0.95, 0.2, 0.5, 0.5, 3e-4
BETA1, BETA2, EPS = 0.9, 0.999, 1e-5

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02  # of Gymnasium's CartPoleEnv, SI units
FARTHEST, STEEPEST, LONGEST = 2.4, 12 * 2 * jnp.pi / 360, 500


class State(NamedTuple):
    """All that lives from one iteration to the next."""
    parameters: jax.Array  # of both networks, in one array, as the two moments of Adam
    mean: jax.Array
    square: jax.Array
    carts: jax.Array  # [4, environments]: position, speed, angle, its speed
    ages: jax.Array  # steps of the running episodes, which are their returns too
    key: jax.Array
    iteration: jax.Array


def move(cart, right):
    """One Euler step of every cart."""
    x, speed, angle, turn = cart
    total, moment = CART + POLE, POLE * HALF_LENGTH
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    push = (jnp.where(right, FORCE, -FORCE) + moment * turn**2 * sine) / total
    turning = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4 / 3 - POLE * cosine**2 / total))
    moving = push - moment * turning * cosine / total
    return jnp.stack([x + TAU * speed, speed + TAU * moving, angle + TAU * turn, turn + TAU * turning])


def has_fallen(cart):
    return (jnp.abs(cart[0]) > FARTHEST) | (jnp.abs(cart[2]) > STEEPEST)


def initial_network(key, outputs, hidden, gain):
    sizes, gains = [4, hidden, hidden, outputs], [2**0.5, 2**0.5, gain]
    return [(jax.nn.initializers.orthogonal(g)(k, (a, b)), jnp.zeros(b)) for k, a, b, g in zip(jax.random.split(key, 3), sizes, sizes[1:], gains)]


def apply(network, rows):
    (w1, b1), (w2, b2), (w3, b3) = network
    return jnp.tanh(jnp.tanh(rows @ w1 + b1) @ w2 + b2) @ w3 + b3


def margin_of(network, rows):
    """How much the second action's logit exceeds the first's: all that a choice between two depends on."""
    logits = apply(network, rows)
    return logits[:, 1] - logits[:, 0]


def log_probability(margin, right):
    return -jax.nn.softplus(jnp.where(right, -margin, margin))


def collect(actor, carts, ages, key, steps):
    """A rollout: the state after it, then observations [T, 4, N], actions, episode ends and ages at them [T, N]."""
    noise_key, cart_key = jax.random.split(key)
    noise = jax.random.logistic(noise_key, (steps, carts.shape[1]))
    fresh = jax.random.uniform(cart_key, (steps, *carts.shape), minval=-0.05, maxval=0.05)

    def step(state, drawn):
        carts, ages = state
        noise, fresh = drawn
        right = margin_of(actor, carts.T) + noise > 0
        moved, ages_after = move(carts, right), ages + 1
        done = has_fallen(moved) | (ages_after >= LONGEST)
        return (jnp.where(done, fresh, moved), jnp.where(done, 0, ages_after)), (carts, right, done, ages_after)

    return lax.scan(step, (carts, ages), (noise, fresh))


def advantages_of(values, last_values, done):
    """Generalised advantage estimation, [T, N], where every reward is 1."""
    goes_on = 1.0 - done
    delta = 1.0 + GAMMA * goes_on * jnp.concatenate([values[1:], last_values[None]]) - values

    def back(later, step):
        delta, goes_on = step
        advantage = delta + GAMMA * GAE_LAMBDA * goes_on * later
        return advantage, advantage

    return lax.scan(back, jnp.zeros_like(last_values), (delta, goes_on), reverse=True, unroll=16)[1]


def shuffles(key, epochs, count):
    """[epochs, count] permutations: random keys, sorted, whose low bits are the row."""
    low = (1 << (count - 1).bit_length()) - 1
    rows = lax.broadcasted_iota(jnp.uint32, (epochs, count), 1)
    keys = jax.random.bits(key, (epochs, count)) & jnp.uint32(~low & 0xFFFFFFFF) | rows
    return (lax.sort(keys, dimension=1, is_stable=False) & jnp.uint32(low)).astype(jnp.int32)


def loss(parameters, networks_of, rows):
    """Of a minibatch [B, 9]: observation, action, log-probability, advantage, target, value."""
    actor, critic = networks_of(parameters)
    obs, action, old_logp, advantage, target, old_value = rows[:, :4], rows[:, 4], rows[:, 5], rows[:, 6], rows[:, 7], rows[:, 8]
    advantage = (advantage - advantage.mean()) / (advantage.std(ddof=1) + 1e-8)
    ratio = jnp.exp(log_probability(margin_of(actor, obs), action > 0.5) - old_logp)
    policy_loss = -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage).mean()
    value = apply(critic, obs)[:, 0]
    clipped = old_value + jnp.clip(value - old_value, -CLIP, CLIP)
    return policy_loss + VALUE_COEF * 0.5 * jnp.maximum((value - target) ** 2, (clipped - target) ** 2).mean()


def adam(parameters, mean, square, gradient, count, rate):
    gradient *= jnp.minimum(1.0, MAX_GRAD_NORM / (jnp.sqrt(jnp.vdot(gradient, gradient)) + 1e-6))
    mean, square = BETA1 * mean + (1 - BETA1) * gradient, BETA2 * square + (1 - BETA2) * gradient**2
    unbias = jnp.sqrt(1 - BETA2**count)  # of the square's root, taken out of the loop over parameters, as is that of the mean
    return parameters - rate * unbias / (1 - BETA1**count) * (mean / (jnp.sqrt(square) + EPS * unbias)), mean, square


def iterate(state, networks_of, args):
    """One iteration: the state after it, then the sum of returns and the count of episodes that ended in it."""
    key, rollout_key, shuffle_key = jax.random.split(state.key, 3)
    actor, critic = networks_of(state.parameters)
    (carts, ages), (obs, right, done, length) = collect(actor, state.carts, state.ages, rollout_key, args.steps)

    count, updates = args.steps * args.num_envs, args.epochs * args.minibatches
    rows = obs.transpose(0, 2, 1).reshape(count, 4)
    values = apply(critic, jnp.concatenate([rows, carts.T]))[:, 0]
    old_values = values[:count].reshape(args.steps, args.num_envs)
    advantages = advantages_of(old_values, values[count:], done)
    columns = right.astype(jnp.float32), log_probability(margin_of(actor, rows), right.reshape(-1)), advantages, advantages + old_values, old_values
    data = jnp.concatenate([rows, jnp.stack([c.reshape(-1) for c in columns], 1)], 1)
    rate = LEARNING_RATE * (1 - state.iteration / args.iterations)

    def update(learned, batch):
        parameters, mean, square, done_before = learned
        gradient = jax.grad(loss)(parameters, networks_of, data[batch])
        return (*adam(parameters, mean, square, gradient, done_before + 1, rate), done_before + 1), None

    batches = shuffles(shuffle_key, args.epochs, count).reshape(updates, -1)
    first = state.parameters, state.mean, state.square, (state.iteration * updates).astype(jnp.float32)
    (parameters, mean, square, _), _ = lax.scan(update, first, batches, unroll=2)
    return State(parameters, mean, square, carts, ages, key, state.iteration + 1), jnp.stack([jnp.where(done, length, 0).sum(), done.sum()])


def program(args):
    """The state before the first iteration and the compiled step (state, n): n iterations, at most CHUNK, and what ended in each."""
    key, *keys = jax.random.split(jax.random.key(args.seed), 4)
    networks = initial_network(keys[0], 2, args.hidden, 0.01), initial_network(keys[1], 1, args.hidden, 1.0)
    parameters, networks_of = ravel_pytree(networks)
    carts = jax.random.uniform(keys[2], (4, args.num_envs), minval=-0.05, maxval=0.05)
    state = State(parameters, jnp.zeros_like(parameters), jnp.zeros_like(parameters), carts, jnp.zeros(args.num_envs, jnp.int32), key, jnp.int32(0))

    @functools.partial(jax.jit, donate_argnums=0)
    def run(state, iterations):
        def one(i, carry):
            state, ended = iterate(carry[0], networks_of, args)
            return state, carry[1].at[i].set(ended)

        return lax.fori_loop(0, iterations, one, (state, jnp.zeros((args.chunk, 2), jnp.int32)))

    return state, run.lower(state, args.chunk).compile()


def train(args):
    state, run = program(args)
    ended, done, begin = [], 0, None
    while done < args.iterations:
        if done == args.skip:
            jax.block_until_ready(state)
            begin = time.perf_counter()
        count = min(args.chunk, (args.skip if done < args.skip else args.iterations) - done)
        state, sums = run(state, count)
        ended += jax.device_get(sums[:count]).tolist()
        done += count
    jax.block_until_ready(state)
    wall = time.perf_counter() - begin
    total = episodes = 0
    for returns, count in reversed(ended):
        total, episodes = total + returns, episodes + count
        if episodes >= 100:
            break
    mean_return = total / episodes if episodes else float("nan")
    print((args.iterations - args.skip) * args.num_envs * args.steps, f"{wall:.6f} {mean_return:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="store_true")
    numbers = {"num-envs": 64, "steps": 32, "epochs": 10, "minibatches": 32, "hidden": 64, "iterations": 20, "skip": 2, "chunk": 20, "seed": 1}
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    if args.iterations <= args.skip:
        parser.error(f"--iterations {args.iterations} leaves nothing after the first {args.skip} (--skip)")
    if args.num_envs * args.steps % args.minibatches:
        parser.error(f"--minibatches {args.minibatches} do not divide {args.num_envs} x {args.steps} rows")
    print(f"JAX {jax.__version__}") if args.version else train(args)


if __name__ == "__main__":
    main()
