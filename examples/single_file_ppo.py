"""PPO in one file, in the style of CleanRL: everything from the environments to the loss, easy to change.

python examples/single_file_ppo.py --decisions 4096

It needs torch and warpzone's environments, but not warpzone's trainer.
"""

from __future__ import annotations

import argparse
import time
from collections import deque

import torch
from torch import nn
from torch.distributions import Categorical

import warpzone

GAMMA, LAMBDA = 0.9, 0.95
CLIP, ENTROPY, VALUE, MAX_NORM = 0.2, 0.01, 0.5, 0.5
EPOCHS, MINIBATCHES, LEARNING_RATE = 3, 4, 5e-4


def layer(module: nn.Module, gain: float = 2**0.5) -> nn.Module:
    nn.init.orthogonal_(module.weight, gain)
    nn.init.zeros_(module.bias)
    return module


class Agent(nn.Module):
    """Four grey frames in, the action's logits and the value out."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            layer(nn.Conv2d(4, 16, 8, stride=4)), nn.ReLU(),
            layer(nn.Conv2d(16, 32, 4, stride=2)), nn.ReLU(),
            nn.Flatten(), layer(nn.Linear(32 * 9 * 9, 256)), nn.ReLU(),
        )  # fmt: skip
        self.policy = layer(nn.Linear(256, actions), 0.01)
        self.value = layer(nn.Linear(256, 1), 1.0)

    def forward(self, frames: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        features = self.body(frames / 255.0)
        return Categorical(logits=self.policy(features)), self.value(features).squeeze(-1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stage", default="1-1")
    parser.add_argument(
        "--decisions", type=int, default=1_000_000, help="decisions of all environments together"
    )
    parser.add_argument("--num-envs", type=int, default=32)
    parser.add_argument("--steps", type=int, default=64, help="decisions per environment and update")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.device(args.device)

    # Same-step autoreset: the observation after an episode's end is the first of the next one, and no step is lost.
    envs = warpzone.MarioVectorEnv(
        args.num_envs, stage=args.stage, size=84, noop_max=30, stall_limit=300, autoreset_mode="same_step"
    )
    agent = Agent(int(envs.single_action_space.n)).to(device)
    optimiser = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
    T, N = args.steps, args.num_envs
    frames = torch.zeros((T, N, 4, 84, 84), dtype=torch.uint8, device=device)
    actions = torch.zeros((T, N), dtype=torch.int64, device=device)
    log_probs, rewards, dones, values = (torch.zeros((T, N), device=device) for _ in range(4))
    cleared: deque[bool] = deque(maxlen=100)
    furthest: deque[int] = deque(maxlen=100)

    observations, _ = envs.reset(seed=args.seed)
    updates, began = max(1, args.decisions // (T * N)), time.perf_counter()
    for update in range(1, updates + 1):
        for t in range(T):
            frames[t] = torch.from_numpy(observations)
            with torch.no_grad():
                policy, values[t] = agent(frames[t])
            actions[t] = policy.sample()
            log_probs[t] = policy.log_prob(actions[t])
            observations, reward, terminated, truncated, info = envs.step(actions[t].cpu().numpy())
            done = terminated | truncated
            rewards[t], dones[t] = torch.from_numpy(reward), torch.from_numpy(done)
            if done.any():
                cleared.extend(info["final_info"]["flag_get"][done].tolist())
                furthest.extend(info["final_info"]["x_max"][done].tolist())
                # Where a limit ended the episode and not the game, the value of the last frame stands for the rest.
                with torch.no_grad():
                    rest = agent(torch.from_numpy(info["final_obs"]).to(device))[1]
                rewards[t] += GAMMA * rest * torch.from_numpy(truncated).to(device)

        with torch.no_grad():
            following = agent(torch.from_numpy(observations).to(device))[1]
        advantages, running = torch.zeros_like(rewards), torch.zeros(N, device=device)
        for t in reversed(range(T)):
            alive = 1.0 - dones[t]
            error = rewards[t] + GAMMA * alive * following - values[t]
            running = error + GAMMA * LAMBDA * alive * running
            advantages[t], following = running, values[t]
        returns = advantages + values

        for _ in range(EPOCHS):
            for rows in torch.randperm(T * N, device=device).chunk(MINIBATCHES):
                policy, value = agent(frames.flatten(0, 1)[rows])
                ratio = (policy.log_prob(actions.flatten()[rows]) - log_probs.flatten()[rows]).exp()
                gain = advantages.flatten()[rows]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
                value_loss = 0.5 * (value - returns.flatten()[rows]).square().mean()
                loss = policy_loss + VALUE * value_loss - ENTROPY * policy.entropy().mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), MAX_NORM)
                optimiser.step()

        if update % 10 == 0 or update == updates:
            mean = sum(furthest) / max(1, len(furthest))
            rate = f"{sum(cleared)} of the last {len(cleared)} episodes cleared, furthest x {mean:.0f} on average"
            speed = update * T * N / (time.perf_counter() - began)
            print(f"{update * T * N} decisions, {rate}, {speed:.0f} decisions/s", flush=True)

    torch.save(agent.state_dict(), "single_file_ppo.pt")
    envs.close()


if __name__ == "__main__":
    main()
