"""Dense cases: the network once over all frames as one chunk with empty memory."""

from dataclasses import replace

import torch

from sanawm_cli.cache.window import WindowMemory
from sanawm_cli.configs import AttentionScale
from sanawm_cli.model.context import CameraInputs
from sanawm_cli.model.reference import bidirectional
from sanawm_cli.verify.cases import Case, placed
from sanawm_cli.verify.networks import case_network, network_config
from sanawm_cli.verify.report import CaseReport, Comparison

# Outputs by attention scale and camera. Others in such a case mix scales between branches or
# cast attention to 16 bits: what some library does, not something that this network offers.
_OUTPUTS: tuple[tuple[str, AttentionScale, bool], ...] = (
    ("out.sglang_dense", "head", True),
    ("out.sglang_dense_nocam", "head", False),
    ("out.sglang_one_chunk_streaming", "padded", True),
)


def verify_dense(case: Case, device: torch.device, dtype: torch.dtype) -> CaseReport:
    """Compare both the streaming network and its plain reference with the outputs."""
    arch = case.facts.get("arch") or case.facts["diffusers_config"]
    base = case_network(case, network_config(arch, "head"), device, dtype)
    wide = torch.promote_types(dtype, torch.float32)
    given = {name: placed(tensor, device, wide) for name, tensor in case.tensors.items()}
    x, embeds, mask = given["in.noise"], given["in.embeds"], given["in.mask"]
    timesteps = given["in.timestep"][:, 0].long()
    comparison = Comparison(case.name, case.kind)
    for name, scale, seen in _OUTPUTS:
        if name not in given:
            continue
        network = type(base)(replace(base.config, attention_scale=scale))
        network.load_state_dict(base.state_dict(), assign=True)
        camera = None
        if seen and "in.camera_conditions" in given:
            camera = CameraInputs(given["in.camera_conditions"], given["in.chunk_plucker"])
        with torch.inference_mode():
            context = network.chunk_context(
                network.text_context(embeds, mask),
                camera,
                latents=range(x.shape[2]),
                size=(x.shape[3], x.shape[4]),
            )
            empty = network.empty_memory(x.shape[0], x.shape[3] * x.shape[4])
            past = WindowMemory(empty, segments={}).view(())
            output = network.velocity(x, network.time_vectors(timesteps), context, past)
            comparison.add("one chunk", name, output, given[name])
            if dtype in (torch.float32, torch.float64):
                plain = bidirectional(network, x.to(dtype), timesteps, embeds, mask, camera)
                comparison.add("bidirectional reference", name, plain, given[name])
    return comparison.report()
