"""Token mixers: gated delta rule and softmax attention, each with a camera branch.

Both end the same way: proj((main + out_proj_cam(camera))·SiLU(output_gate(u))).
Tokens are b t s c: frames, then the tokens of a frame; heads are contiguous slices of c.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sanawm_cli.configs import NetworkConfig
from sanawm_cli.model.context import CameraContext, ChunkContext
from sanawm_cli.model.delta import Scan, scan
from sanawm_cli.model.key_conv import key_convolution, key_tail
from sanawm_cli.model.memory import AttentionMemory, DeltaMemory, KeyValue
from sanawm_cli.model.parts import QK_NORM_EPS, Linear, RMSNorm, wide
from sanawm_cli.model.rays import encode_rays, limit_rms

NORMALISER_EPS = 1e-8
KEY_NORM_FLOOR = 1e-6


class Mixer(nn.Module):
    """The projections and norms that both kinds of mixer have."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.qkv = Linear(width, 3 * width, bias=False)
        self.q_norm = RMSNorm(width, QK_NORM_EPS)
        self.k_norm = RMSNorm(width, QK_NORM_EPS)
        self.q_proj_cam = Linear(width, width)
        self.k_proj_cam = Linear(width, width)
        self.v_proj_cam = Linear(width, width)
        self.q_norm_cam = RMSNorm(width, QK_NORM_EPS)
        self.k_norm_cam = RMSNorm(width, QK_NORM_EPS)
        self.out_proj_cam = Linear(width, width)
        self.output_gate = Linear(width, width)
        self.proj = Linear(width, width)

    def split_heads(self, x: Tensor) -> Tensor:
        """b t s c → b n h d."""
        return x.flatten(1, 2).unflatten(-1, (self.heads, -1))

    def finish(self, u: Tensor, main: Tensor, camera: Tensor | None) -> Tensor:
        """Add the camera's part to the main one (both b n c), gate by u (b t s c), project."""
        if camera is not None:
            main = main + self.out_proj_cam(camera)
        gate = F.silu(wide(self.output_gate(u)))  # 16 bits are too few for a gate
        return self.proj(main.view_as(gate) * gate)


class DeltaMixer(Mixer):
    """Gated delta rule: reads the past as a state of fixed size."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        width, heads = config.width, config.heads
        self.A_log = nn.Parameter(torch.empty(heads))
        self.dt_bias = nn.Parameter(torch.empty(heads))
        self.beta_proj = Linear(width, heads)
        self.gate_proj = Linear(width, heads)
        self.conv_k = KeyConvWeight(width)
        self.conv_k_cam = KeyConvWeight(width)

    def forward(
        self, u: Tensor, memory: DeltaMemory, context: ChunkContext
    ) -> tuple[Tensor, DeltaMemory]:
        """u: b t s c. Returns the mixed tokens and the memory after this chunk."""
        beta, decay = self.gates(u)  # b h t s, b h t
        main, state, norm, tail = self.main(u, beta, decay, memory, context)
        camera, camera_state = None, memory.camera
        if context.camera is not None:
            camera, camera_state = self.camera(u, beta, decay, memory, context.camera)
        seen = replace(memory, state=state, norm=norm, camera=camera_state, key_tail=tail)
        return self.finish(u, main, camera), seen

    def gates(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Step size β per token and head (b h t s), decay γ per frame and head (b h t)."""
        beta = torch.sigmoid(wide(self.beta_proj(u))).permute(0, 3, 1, 2)
        rate = F.softplus(wide(self.gate_proj(wide(u).mean(2))) + wide(self.dt_bias))
        decay = torch.exp(-torch.exp(wide(self.A_log)) * rate).transpose(1, 2)
        return beta, decay

    def key_scale(self, u: Tensor) -> float:
        """d^−½·S^−½: keeps a frame's sum of k kᵀ below one."""
        return float((u.shape[-1] // self.heads) * u.shape[2]) ** -0.5

    def main(
        self, u: Tensor, beta: Tensor, decay: Tensor, memory: DeltaMemory, context: ChunkContext
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns b n c, then state, norm and key tail after the chunk."""
        q, raw_k, v = self.qkv(u).chunk(3, -1)
        k = key_convolution(raw_k, self.conv_k.weight, memory.key_tail)
        q = self.split_heads(F.relu(self.q_norm(q)))
        k = self.split_heads(F.relu(self.k_norm(k)) * self.key_scale(u))
        v = self.frames(self.split_heads(wide(v)), u)
        turned_q = self.frames(context.rotation.apply(q), u)
        turned_k = self.frames(context.rotation.apply(k), u)
        q, k = self.frames(q, u), self.frames(k, u)
        values = scan(turned_k, v, beta, decay, memory.state)
        # The normaliser sees un-rotated keys, so that it stays positive.
        norms = scan(k, torch.ones_like(v[..., :1]), beta, decay, memory.norm)
        main = values.read(turned_q) / (norms.read(q) + NORMALISER_EPS)  # b h t s d
        return self.tokens(main), values.last, norms.last, key_tail(raw_k)

    def camera(
        self, u: Tensor, beta: Tensor, decay: Tensor, memory: DeltaMemory, camera: CameraContext
    ) -> tuple[Tensor, Tensor]:
        """Returns b n c and the camera state after the chunk."""
        # Upstream's camera convolution never looks into the previous chunk: the tail is zeros.
        k = self.k_proj_cam(u)
        k = key_convolution(k, self.conv_k_cam.weight, torch.zeros_like(memory.key_tail))
        q = self.split_heads(F.relu(self.q_norm_cam(self.q_proj_cam(u))))
        k = self.split_heads(F.relu(self.k_norm_cam(k)) * self.key_scale(u))
        v = self.split_heads(self.v_proj_cam(u))
        into, out = camera.rays.into, camera.rays.out
        seen_q = limit_rms(encode_rays(q, into.mT, camera.rotation), q)
        seen_k = limit_rms(encode_rays(k, out, camera.rotation), k)
        seen_v = limit_rms(encode_rays(v, out, camera.rotation), v)
        beta = beta / self.inflation(self.frames(seen_k, u), self.frames(k, u))
        result: Scan = scan(
            self.frames(seen_k, u), self.frames(seen_v, u), beta, decay, memory.camera
        )
        read = result.read(self.frames(seen_q, u)).permute(0, 2, 3, 1, 4).flatten(1, 2)  # b n h d
        return encode_rays(read, into, camera.rotation.inverse()).flatten(2), result.last

    @staticmethod
    def inflation(seen: Tensor, key: Tensor) -> Tensor:
        """How much ray matrices lengthened a frame's keys, squared, at least 1: (b h t 1).

        Without it the delta rule's step could exceed 1 and the state diverge.
        """
        after = torch.linalg.vector_norm(seen, dim=-1).clamp(min=KEY_NORM_FLOOR)
        before = torch.linalg.vector_norm(key, dim=-1).clamp(min=KEY_NORM_FLOOR)
        return (after / before).square().mean(-1, keepdim=True).clamp(min=1)

    @staticmethod
    def frames(x: Tensor, like: Tensor) -> Tensor:
        """b n h d → b h t s d, with t and s of `like` (b t s c)."""
        return x.unflatten(1, like.shape[1:3]).permute(0, 3, 1, 2, 4)

    @staticmethod
    def tokens(x: Tensor) -> Tensor:
        """b h t s d → b n c."""
        return x.permute(0, 2, 3, 1, 4).flatten(1, 2).flatten(2)


class SoftmaxMixer(Mixer):
    """Softmax attention over the window's keys and this chunk's, without a mask inside.

    The checkpoints hold gate parameters here too; they are unused, so they are not ours
    (`weights.keymaps` lists them).
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.main_scale = config.softmax_scale
        self.camera_scale = config.softmax_scale

    def forward(
        self, u: Tensor, memory: AttentionMemory, context: ChunkContext
    ) -> tuple[Tensor, AttentionMemory]:
        """u: b t s c. Returns the mixed tokens and this chunk's own keys and values."""
        main, seen_main = self.main(u, memory.main, context)
        camera, seen_camera = None, empty_like(seen_main)
        if context.camera is not None:
            camera, seen_camera = self.camera(u, memory.camera, context.camera)
        seen = replace(memory, main=seen_main, camera=seen_camera)
        return self.finish(u, main, camera), seen

    def main(self, u: Tensor, past: KeyValue, context: ChunkContext) -> tuple[Tensor, KeyValue]:
        """Returns b n c and this chunk's keys (rotated) and values."""
        q, k, v = self.qkv(u).chunk(3, -1)
        q = context.rotation.apply(self.split_heads(self.q_norm(q)))
        k = context.rotation.apply(self.split_heads(self.k_norm(k)))
        return self.attend(q, k, self.split_heads(v), past, u.dtype, self.main_scale)

    def camera(self, u: Tensor, past: KeyValue, camera: CameraContext) -> tuple[Tensor, KeyValue]:
        """Returns b n c and this chunk's keys and values in world coordinates."""
        q = self.split_heads(self.q_norm_cam(self.q_proj_cam(u)))
        k = self.split_heads(self.k_norm_cam(self.k_proj_cam(u)))
        v = self.split_heads(self.v_proj_cam(u))
        into, out = camera.rays.into, camera.rays.out
        q = limit_rms(encode_rays(q, into.mT, camera.rotation), q)
        k = limit_rms(encode_rays(k, out, camera.rotation), k)
        v = limit_rms(encode_rays(v, out, camera.rotation), v)
        read, seen = self.attend(q, k, v, past, u.dtype, self.camera_scale)
        heads = read.unflatten(-1, (self.heads, -1))
        return encode_rays(heads, into, camera.rotation.inverse()).flatten(2), seen

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        past: KeyValue,
        dtype: torch.dtype,
        scale: float,
    ) -> tuple[Tensor, KeyValue]:
        """Attention of b n h d over past and present; returns b n c and the present's keys."""
        query = query.transpose(1, 2).to(dtype)
        own = KeyValue(key.transpose(1, 2).to(dtype), value.transpose(1, 2).to(dtype))
        read = F.scaled_dot_product_attention(
            query,
            torch.cat((past.key, own.key), 2),
            torch.cat((past.value, own.value), 2),
            scale=scale,
        )
        return read.transpose(1, 2).flatten(2), own


def empty_like(tokens: KeyValue) -> KeyValue:
    """No tokens, in the shape and precision of `tokens`."""
    return KeyValue(tokens.key[:, :, :0], tokens.value[:, :, :0])


class KeyConvWeight(nn.Module):
    """Holder of a depthwise key convolution's taps, (c 1 4)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, 1, 4))
