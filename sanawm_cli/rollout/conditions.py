"""A clip's conditioning in the batch that the sampler needs: once per clip, once per chunk."""

from sanawm_cli.conditioning.clip import Clip, guided_text
from sanawm_cli.errors import UsageError
from sanawm_cli.model.context import CameraInputs, ChunkContext, TextContext
from sanawm_cli.model.dit import Network
from sanawm_cli.plan.chunks import Chunk
from sanawm_cli.rollout.loop import Sampler


def clip_text(network: Network, clip: Clip, sampler: Sampler) -> TextContext:
    """The prompt as the blocks read it; under guidance the batch is [negative, positive].

    Raises UsageError when guidance is on and there is no negative prompt.
    """
    text = clip.text
    if sampler.copies == 2:
        if clip.negative is None:
            raise UsageError(
                f"guidance (cfg scale {sampler.cfg_scale:g}) needs a negative prompt",
                hint="add --negative-prompt TEXT, or use --cfg-scale 1",
            )
        text = guided_text(clip.text, clip.negative)
    return network.text_context(text.embeds, text.mask)


def chunk_context(
    network: Network, clip: Clip, text: TextContext, chunk: Chunk, sampler: Sampler
) -> ChunkContext:
    """Everything but noise level and memory that a chunk's passes depend on."""
    rows, columns = clip.first_latent.shape[3:]
    return network.chunk_context(
        text,
        _camera(clip, chunk, sampler.copies),
        latents=range(chunk.start, chunk.stop),
        size=(rows, columns),
    )


def _camera(clip: Clip, chunk: Chunk, copies: int) -> CameraInputs | None:
    if clip.camera is None:
        return None
    camera = clip.camera.chunk(chunk.start, chunk.stop)
    return CameraInputs(
        camera.raymap.repeat(copies, 1, 1), camera.plucker.repeat(copies, 1, 1, 1, 1)
    )
