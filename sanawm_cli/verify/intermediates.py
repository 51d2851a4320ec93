"""Every intermediate of one forward pass, for telling where a difference begins."""

from collections.abc import Mapping

from torch import Tensor

from sanawm_cli.model.block import Block
from sanawm_cli.model.context import ChunkContext, TimeVectors
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import BlockMemory, DeltaMemory, KeyValue, Past
from sanawm_cli.model.mixers import DeltaMixer, SoftmaxMixer
from sanawm_cli.verify.report import Comparison


def compare_intermediates(
    comparison: Comparison,
    network: Network,
    noise: Tensor,
    time: TimeVectors,
    context: ChunkContext,
    past: Past,
    want: Mapping[str, Tensor],
) -> None:
    """Walk one pass over `noise` (b c t h w) by hand and compare with all that `want` holds."""

    def compare(name: str, have: Tensor) -> None:
        if name in want:
            reference = want[name]
            quantity = "intermediates: " + name.split(".", 1)[-1 if name.startswith("b") else 0]
            comparison.add(quantity, name, have.reshape(reference.shape), reference)

    x = network.x_embedder(network.tokens(noise))
    compare("x_embed", x)
    compare("t_emb", time.embedding)
    compare("t6", time.modulation)
    compare("rope.re", context.rotation.cos)
    compare("rope.im", context.rotation.sin)
    if context.camera is not None:
        compare("raymats", context.camera.rays.into)
        compare("plucker_emb", context.camera.plucker)
    for index, block in enumerate(network.layers):
        text, memory = context.text.blocks[index], past.block(index)
        parts, x = _block(block, x, time, context, text, memory)
        for name, have in parts.items():
            compare(f"b{index}.{name}", have)


def _block(
    block: Block,
    x: Tensor,
    time: TimeVectors,
    context: ChunkContext,
    text: KeyValue,
    memory: BlockMemory,
) -> tuple[dict[str, Tensor], Tensor]:
    """The intermediates of one block, and its output."""
    mix, ffn = block.modulation(time)
    u = mix.enter(x)
    parts = _mixer(block, u, context, memory)
    parts["attn_out"] = block.attn(u, memory, context)[0]
    y = mix.leave(x, parts["attn_out"])
    if context.camera is not None:
        y = y + block.plucker_proj(context.camera.plucker)
    parts["cross_out"] = block.cross_attn(y, text, context.text.mask)
    y = y + parts["cross_out"]
    parts["mlp_out"] = block.mlp(ffn.enter(y), memory.ffn_tail, context.size)[0]
    parts["x_out"] = block(x, time, context, text, memory)[0]
    return parts, parts["x_out"]


def _mixer(
    block: Block, u: Tensor, context: ChunkContext, memory: BlockMemory
) -> dict[str, Tensor]:
    """Both branches before they are summed and gated."""
    mixer = block.attn
    parts: dict[str, Tensor] = {}
    if isinstance(mixer, DeltaMixer) and isinstance(memory, DeltaMemory):
        beta, decay = mixer.gates(u)
        parts = {"main.beta": beta, "main.decay": decay}
        parts["main.raw"] = mixer.main(u, beta, decay, memory, context)[0]
        if context.camera is not None:
            parts["cam.raw"] = mixer.camera(u, beta, decay, memory, context.camera)[0]
    elif isinstance(mixer, SoftmaxMixer) and not isinstance(memory, DeltaMemory):
        parts["main.raw"] = mixer.main(u, memory.main, context)[0]
        if context.camera is not None:
            parts["cam.raw"] = mixer.camera(u, memory.camera, context.camera)[0]
    return parts
