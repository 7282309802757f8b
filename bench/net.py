"""The native net against torch: the same weights, the same rollout, both on the same threads.

    python bench/net.py [--encoder small] [--threads 2] [--rounds 15]

Checks first that both give the same numbers, then times them alternately and prints microseconds per observation:
acting for 64 environments, evaluating a rollout, and a whole update of one epoch of PPO (targets, gathering,
forward, backward, Adam).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from warpzone.learn.config import LearnConfig
from warpzone.learn.learner import Learner
from warpzone.learn.native import NativeLearner, NativePolicy
from warpzone.learn.rollout import Rollout, allocate_rollout
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy

STEPS, ENVS, STACK, ACTIONS = 32, 64, 4, 7


def random_rollout(policy: Policy, height: int, width: int) -> Rollout:
    generator = torch.Generator().manual_seed(0)
    rollout = allocate_rollout(STEPS, ENVS, (1, height, width), STACK)
    rollout.frames.random_(0, 256, generator=generator)
    rollout.age += torch.arange(STEPS + 1)[:, None] + STACK
    rollout.actions.random_(0, ACTIONS, generator=generator)
    rollout.rewards.normal_(generator=generator)
    with torch.no_grad():
        logits, values = policy.unroll(rollout.sequences(torch.arange(ENVS)), (), rollout.starts)
    rollout.values.copy_(values)
    rollout.logp.copy_(logits.log_softmax(-1).gather(-1, rollout.actions[..., None])[..., 0])
    return rollout


def seconds(call: Callable[[], object], repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats


def compare(
    name: str, pictures: int, torch_call: Callable[[], object], native_call: Callable[[], object], rounds: int
) -> None:
    """Time both alternately and print medians and the ratio with its quartiles."""
    repeats = max(1, 2048 // pictures)
    seconds(torch_call, 1), seconds(native_call, 1)
    times = np.array([(seconds(torch_call, repeats), seconds(native_call, repeats)) for _ in range(rounds)])
    in_torch, native = np.median(times, axis=0) / pictures * 1e6
    low, middle, high = np.percentile(times[:, 0] / times[:, 1], [25, 50, 75])
    print(f"{name:24} {in_torch:10.2f} {native:10.2f} {middle:9.1f}x   [{low:.1f}, {high:.1f}]")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoder", default="tiny", choices=["tiny", "small", "nature"])
    parser.add_argument("--height", type=int, default=26)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kernels", default="", help="instruction set; by default the best")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = ModelConfig(encoder=args.encoder)
    shape = (STACK, args.height, args.width)
    policy = Policy(model, shape, ACTIONS)
    native_policy = NativePolicy(model, shape, ACTIONS, threads=args.threads, kernels=args.kernels)
    native_policy.load_state_dict(policy.state_dict())
    rollout = random_rollout(policy, args.height, args.width)
    config = LearnConfig(epochs=1, minibatch_size=256, learning_rate=1e-4)
    learner, native_learner = Learner(policy, config), NativeLearner(native_policy, config)

    expected, found = learner.update(rollout), native_learner.update(rollout)
    for name in ("loss_total", "approx_kl", "grad_norm"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-2, atol=1e-6, err_msg=name)
    for mine, theirs in zip(native_policy.parameters(), policy.parameters(), strict=True):
        assert torch.dist(mine, theirs) < 1e-3 * theirs.norm().clamp(min=1e-2), "the learners part ways"
    print(
        f"same numbers; {args.encoder} {shape}, {args.threads} threads, kernels {native_policy.net.kernels}\n"
    )

    everything = rollout.sequences(torch.arange(ENVS)).flatten(0, 1)
    few, rounds = everything[:ENVS], args.rounds
    print(f"{'us per observation':24} {'torch':>10} {'native':>10} {'ratio':>10}   quartiles")
    with torch.no_grad():
        compare(
            "act, 64 pictures", ENVS, lambda: policy.act(few), lambda: native_policy.act(few), args.rounds
        )
        compare(
            "forward, 2048 pictures",
            len(everything),
            lambda: policy.act(everything),
            lambda: native_policy.act(everything),
            rounds,
        )
    compare(
        "update, per epoch",
        rollout.num_decisions,
        lambda: learner.update(rollout),
        lambda: native_learner.update(rollout),
        rounds,
    )


if __name__ == "__main__":
    main()
