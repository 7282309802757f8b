"""Stable-Baselines3's PPO with our network, on our environment or on nes-py: the other side of `bench train`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.envs.make import make_envs
from warpzone.envs.nes_py.config import BackendConfig
from warpzone.envs.nes_py.patches import quiet_gym
from warpzone.envs.nes_py.vector import BackendVectorEnv
from warpzone.envs.vector import MarioVectorEnv
from warpzone.model.config import ModelConfig
from warpzone.model.encoder import Encoder
from warpzone.run.config import TrainConfig

with quiet_gym():
    from stable_baselines3 import PPO
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import VecEnv


class OurEncoder(BaseFeaturesExtractor):
    """Our encoder as Stable-Baselines3 wants it; it scales pictures itself."""

    def __init__(self, observation_space: gym.spaces.Box, model: ModelConfig) -> None:
        channels, height, width = observation_space.shape
        encoder = Encoder(model, (channels, height, width))
        super().__init__(observation_space, encoder.hidden)
        self.encoder = encoder

    def forward(self, observations: Tensor) -> Tensor:
        features: Tensor = self.encoder(observations)
        return features


class OurEnvironments(VecEnv):
    """A vector of ours as one of Stable-Baselines3's."""

    def __init__(self, envs: MarioVectorEnv | BackendVectorEnv) -> None:
        self.envs = envs
        self.render_mode = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> NDArray[np.uint8]:
        return self.envs.reset()[0]

    def step_async(self, actions: NDArray[np.int64]) -> None:
        self.envs.send(actions)

    def step_wait(
        self,
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, info = self.envs.recv()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(terminated | truncated):
            infos[i]["terminal_observation"] = info["final_obs"][i]
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return observations, rewards, terminated | truncated, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def our_environments(config: TrainConfig) -> VecEnv:
    return OurEnvironments(
        make_envs(
            config.view, config.collect.num_envs, config.stage.names(), threads=config.stage.env_threads,
            seed=config.run.seed, autoreset_mode="same_step", reward=config.reward,
        )
    )  # fmt: skip


def nes_py_environments(config: TrainConfig, num_envs: int) -> VecEnv:
    """One process for each environment, as is usual with Stable-Baselines3, but with pictures in shared memory."""
    backend = BackendConfig(backend="nes-py", async_env=True, strict_env=True)
    return OurEnvironments(
        BackendVectorEnv(
            num_envs, config.stage.names()[:1], view=config.view, reward=config.reward, backend=backend,
            seed=config.run.seed, say=lambda line: None,
        )
    )  # fmt: skip


def make_ppo(config: TrainConfig, envs: VecEnv, device: torch.device) -> PPO:
    """PPO with our network, rollout, minibatches and epochs."""
    learn, recipe = config.learn, config.learn.recipe()
    return PPO(
        "CnnPolicy",
        envs,
        learning_rate=learn.learning_rate,
        n_steps=config.decisions_per_update // envs.num_envs,
        batch_size=config.decisions_per_minibatch(),
        n_epochs=recipe.epochs,
        gamma=learn.gamma,
        gae_lambda=recipe.gae_lambda,
        clip_range=learn.clip,
        ent_coef=learn.entropy_coef,
        vf_coef=learn.value_coef,
        max_grad_norm=learn.max_grad_norm,
        seed=config.run.seed,
        device=device,
        policy_kwargs={
            "features_extractor_class": OurEncoder,
            "features_extractor_kwargs": {"model": config.model},
            "normalize_images": False,
            "net_arch": [],
        },
    )
