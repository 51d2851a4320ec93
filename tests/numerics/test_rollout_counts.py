"""Nothing is computed again that has not changed: per clip, per chunk, per step."""

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from toy import STEPS, render, toy_clip, toy_network, toy_noise, toy_plan, toy_session, toy_text

from sanawm_cli.model import dit
from sanawm_cli.model.rays import RayTransforms, ray_transforms
from sanawm_cli.model.rope import Rotation, rotation
from sanawm_cli.rollout.loop import StepDone

CHUNKS = (3, 2, 2)
PASSES = len(CHUNKS) * len(STEPS)  # the noise steps of a chunk, and the clean pass


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Counter[str]]:
    """Renders three chunks and says how often each part of the network was called."""

    def count(cfg_scale: float) -> Counter[str]:
        network, calls = toy_network(dtype=torch.float32), Counter[str]()

        def watch(name: str, module: nn.Module) -> None:
            module.register_forward_hook(lambda *_: calls.update([name]))

        for name, module in network.named_modules():
            watch(name, module)

        def rays(raymap: Tensor, size: tuple[int, int]) -> RayTransforms:
            calls.update(["ray_transforms"])
            return ray_transforms(raymap, size)

        def turn(
            head: int, channels: int, latents: range, size: tuple[int, int], device: torch.device
        ) -> Rotation:
            calls.update(["rotation"])
            return rotation(head, channels, latents, size, device)

        monkeypatch.setattr(dit, "ray_transforms", rays)
        monkeypatch.setattr(dit, "rotation", turn)
        plan = toy_plan(*CHUNKS)
        clip = toy_clip(plan.latents, dtype=torch.float32, negative=toy_text(3, seed=30))
        session = toy_session(network, cfg_scale=cfg_scale)
        render(session, clip, plan, toy_noise(plan, dtype=torch.float32))
        return calls

    return count


@pytest.mark.parametrize("cfg_scale", [1.0, 2.5], ids=["plain", "guided"])
def test_calls_of_a_render(counted: Callable[[float], Counter[str]], cfg_scale: float) -> None:
    calls = counted(cfg_scale)
    once = ["t_embedder", "t_block", "y_embedder", "attention_y_norm"]
    for block in range(4):
        once += [f"blocks.{block}.cross_attn.{part}" for part in ("kv_linear", "k_norm")]
    assert {name: calls[name] for name in once} == dict.fromkeys(once, 1)
    assert calls["plucker_embedder"] == calls["ray_transforms"] == len(CHUNKS)
    assert calls["rotation"] == 2 * len(CHUNKS)  # whole heads, and the camera's half
    assert calls["x_embedder"] == PASSES
    assert calls["final_layer"] == PASSES - len(CHUNKS)  # the clean pass predicts nothing
    for block in range(4):
        assert calls[f"blocks.{block}.attn.qkv"] == PASSES
        assert calls[f"blocks.{block}.cross_attn.q_linear"] == PASSES


def test_guidance_is_one_batch(network32: dit.Network) -> None:
    """Both prompts in one pass, so the weights are read once."""
    plan = toy_plan(2)
    clip = toy_clip(2, dtype=torch.float32, negative=toy_text(3, seed=30))
    outputs: list[StepDone] = []
    session = toy_session(network32, cfg_scale=2.5)
    session.start(clip, plan, toy_noise(plan, dtype=torch.float32))
    session.step(outputs.append)
    assert [done.output.shape[0] for done in outputs] == [2, 2]
    assert [done.latents.shape[0] for done in outputs] == [1, 1]
