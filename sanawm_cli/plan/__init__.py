"""Plans: how many frames a render has and how they are cut into chunks. Pure data."""

from sanawm_cli.plan.chunks import Chunk, FrameSource, Plan, PlanGrid, context_of, cut
from sanawm_cli.plan.request import FrameRequest, Snap, make_plan
from sanawm_cli.plan.sizes import MAX_LATENTS, chunk_sizes, parse_chunk_plan

__all__ = [
    "MAX_LATENTS",
    "Chunk",
    "FrameRequest",
    "FrameSource",
    "Plan",
    "PlanGrid",
    "Snap",
    "chunk_sizes",
    "context_of",
    "cut",
    "make_plan",
    "parse_chunk_plan",
]
