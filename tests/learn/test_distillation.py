"""Following teachers: what they say of a rollout, and that a policy comes to do what they do."""

from __future__ import annotations

import pytest
import torch

from warpzone.learn.config import LearnConfig
from warpzone.learn.distillation import Teachers, reduced
from warpzone.learn.learner import Learner
from warpzone.learn.losses import teacher_kl
from warpzone.learn.minibatch import Samples
from warpzone.learn.rollout import Rollout
from warpzone.model.config import ModelConfig
from warpzone.model.policy import Policy

from .rollouts import make_policy, random_rollout


def samples_of(rollout: Rollout) -> Samples:
    zeros = torch.zeros_like(rollout.rewards)
    return Samples(rollout, zeros, zeros, zeros, zeros)


def decided(seed: int) -> Policy:
    """A policy that likes some actions clearly better than others."""
    policy = make_policy(seed=seed)
    with torch.no_grad():
        policy.logits.weight.mul_(200)
    return policy


def test_the_distance_is_that_of_the_two_distributions_and_0_without_a_teacher() -> None:
    logits = torch.tensor([[1.0, 0.0, -1.0], [2.0, 0.0, 0.0]], requires_grad=True)
    teacher = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    found = teacher_kl(logits, teacher)
    p = logits[0].softmax(-1)
    wanted = 0.5 * (0.5 / p[0]).log() + 0.5 * (0.5 / p[1]).log()
    torch.testing.assert_close(found, torch.stack([wanted, torch.tensor(0.0)]))
    found.sum().backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad[0], (p - teacher[0]).detach())
    assert torch.equal(logits.grad[1], torch.zeros(3))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_each_decision_is_judged_by_the_teacher_of_its_stage(temperature: float) -> None:
    rollout = random_rollout(make_policy(), steps=7, num_envs=5, stages=4)
    known = {0: decided(1), 2: decided(2)}
    said = Teachers(known, temperature).probabilities(samples_of(rollout))
    assert said.shape == (7, 5, 3)
    assert set(rollout.stage.unique().tolist()) == {0, 1, 2, 3}
    for t in range(7):
        for n in range(5):
            teacher = known.get(int(rollout.stage[t, n]))
            wanted = torch.zeros(3)
            if teacher is not None:
                picture = rollout.stacks(torch.tensor([t]), torch.tensor([n]))
                with torch.no_grad():
                    wanted = (teacher.act(picture)[0][0] / temperature).softmax(-1)
            torch.testing.assert_close(said[t, n], wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("recurrent_type", ["none", "gru"])
def test_a_policy_comes_to_do_what_its_teacher_does(recurrent_type: str) -> None:
    student = make_policy(recurrent_type)
    config = LearnConfig(
        minibatches=2, epochs=10, target_kl=0, learning_rate=3e-3, lr_schedule="constant", teacher_coef=10
    )
    learner = Learner(student, config, teachers=Teachers({0: decided(1)}), seed=3)
    rollout = random_rollout(student, steps=16, num_envs=8, stages=2)
    first = learner.update(rollout)
    for _ in range(15):
        last = learner.update(rollout)
    assert first["loss_teacher"] > 0.1
    assert last["loss_teacher"] < 0.1 * first["loss_teacher"]
    alone = Learner(make_policy(recurrent_type), config, seed=3).update(rollout)
    assert alone["loss_teacher"] == 0


def test_the_teachers_weight_goes_down_in_a_line() -> None:
    config = LearnConfig(minibatches=2, epochs=1, teacher_coef=2.0, teacher_final=0.5, anneal_updates=4)
    learner = Learner(make_policy(), config, teachers=Teachers({0: decided(1)}))
    weights = []
    for _ in range(5):
        weights.append(learner.teacher_coef)
        learner.update(random_rollout(learner.policy))
    assert weights == pytest.approx([2.0, 1.5, 1.0, 0.5, 0.5])


def test_a_reduced_pixel_is_the_mean_of_the_area_it_covers() -> None:
    picture = torch.tensor([[0, 0, 90], [0, 0, 90], [30, 30, 30]], dtype=torch.uint8).view(1, 1, 3, 3)
    assert reduced(picture, (3, 3)) is picture
    # Each new pixel covers one and a half old ones on each side.
    wanted = torch.tensor([[0, 60], [20, 40]], dtype=torch.uint8)
    assert torch.equal(reduced(picture, (2, 2))[0, 0], wanted)
    large = torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8)
    halves = large.view(2, 4, 42, 2, 42, 2).double().mean((3, 5)).round().to(torch.uint8)
    assert (reduced(large, (42, 42)).int() - halves.int()).abs().max() <= 1
    assert torch.equal(reduced(torch.full_like(large, 200), (26, 32)), torch.full((2, 4, 26, 32), 200).byte())


def test_a_teacher_of_smaller_pictures_is_shown_them_reduced() -> None:
    student = make_policy()
    torch.manual_seed(1)
    config = ModelConfig(encoder="tiny", hidden=16)
    teacher = Policy(config, (2, 8, 8), num_actions=3)
    rollout = random_rollout(student)
    said = Teachers({0: teacher}).probabilities(samples_of(rollout))
    pictures = rollout.sequences(torch.arange(rollout.num_envs)).flatten(0, 1)
    with torch.no_grad():
        wanted = teacher.act(reduced(pictures, (8, 8)))[0].softmax(-1)
    torch.testing.assert_close(said.flatten(0, 1), wanted)
