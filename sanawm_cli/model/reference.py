"""The network as its definition reads: one function, the whole clip at once, nothing clever.

`bidirectional` is what `Network.velocity` must equal for a single chunk with empty memory. It
shares the weights with the network and as little else as it can: loops over frames, grouped
convolutions and explicit softmax instead of fused products. For tests and `verify` only.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from sanawm_cli.model.context import CameraInputs
from sanawm_cli.model.delta import scan_reference
from sanawm_cli.model.dit import Network
from sanawm_cli.model.rays import ray_transforms
from sanawm_cli.model.rope import axis_pairs

Weights = dict[str, Tensor]


def bidirectional(
    network: Network,
    x: Tensor,
    timesteps: Tensor,
    embeds: Tensor,
    mask: Tensor,
    camera: CameraInputs | None,
) -> Tensor:
    """Velocity of a whole clip x (b c t h w) with one timestep per frame (b t)."""
    return _Reference(network, x, camera).run(timesteps, embeds, mask)


class _Reference:
    """The pieces of one forward pass; `w` is the network's state by published name."""

    def __init__(self, network: Network, x: Tensor, camera: CameraInputs | None) -> None:
        self.w = dict(network.state_dict())
        self.config = network.config
        self.time_embedding = network.t_embedder
        self.x = x
        self.camera = camera
        self.frames, self.rows, self.columns = x.shape[2:]
        self.tokens = self.rows * self.columns
        if camera is not None:
            rays = ray_transforms(camera.raymap, (self.rows, self.columns))
            self.into, self.out = rays.into, rays.out

    def run(self, timesteps: Tensor, embeds: Tensor, mask: Tensor) -> Tensor:
        w = self.w
        x = self._channels(F.conv3d(self.x, w["x_embedder.proj.weight"], w["x_embedder.proj.bias"]))
        e = self.time_embedding(timesteps)  # b t c
        t6 = self._linear(F.silu(e), "t_block.1").unflatten(-1, (6, -1))
        y = F.gelu(self._linear(embeds, "y_embedder.y_proj.fc1"), approximate="tanh")
        y = self._norm(self._linear(y, "y_embedder.y_proj.fc2"), "attention_y_norm", 1e-5)
        for index, kind in enumerate(self.config.kinds):
            x = self._block(f"blocks.{index}", kind == "delta", x, t6, y, mask.bool())
        shift, scale = (
            (w["final_layer.scale_shift_table"][i] + e).repeat_interleave(self.tokens, 1)
            for i in range(2)
        )
        x = F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale) + shift
        out = self._linear(x, "final_layer.linear")
        return out.mT.unflatten(-1, (self.frames, self.rows, self.columns))

    def _block(
        self, name: str, delta: bool, x: Tensor, t6: Tensor, y: Tensor, mask: Tensor
    ) -> Tensor:
        """x: b n c."""
        m = self.w[f"{name}.scale_shift_table"] + t6  # b t 6 c
        m = m.repeat_interleave(self.tokens, 1)
        shift_a, scale_a, gate_a, shift_f, scale_f, gate_f = m.unbind(2)
        u = F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale_a) + shift_a
        x = x + gate_a * self._mixer(f"{name}.attn", delta, u)
        if self.camera is not None:
            plucker = F.conv3d(
                self.camera.plucker,
                self.w["plucker_embedder.proj.weight"],
                self.w["plucker_embedder.proj.bias"],
            )
            x = x + self._linear(self._channels(plucker), f"{name}.plucker_proj")
        x = x + self._cross(f"{name}.cross_attn", x, y, mask)
        u = F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale_f) + shift_f
        return x + gate_f * self._ffn(f"{name}.mlp", u)

    # --- mixers -------------------------------------------------------------------------------

    def _mixer(self, name: str, delta: bool, u: Tensor) -> Tensor:
        out = self._delta_main(name, u) if delta else self._softmax_main(name, u)
        if self.camera is not None:
            q, k, v = (self._linear(u, f"{name}.{part}_proj_cam") for part in "qkv")
            if delta:
                seen = self._delta_camera(name, u, q, k, v)
            else:
                q = self._norm(q, f"{name}.q_norm_cam", 1e-5)
                k = self._norm(k, f"{name}.k_norm_cam", 1e-5)
                seen = self._attention(*self._see(q, k, v), self.config.softmax_scale)
            out = out + self._linear(self._unsee(seen), f"{name}.out_proj_cam")
        gate = F.silu(self._linear(u, f"{name}.output_gate"))
        return self._linear(out * gate, f"{name}.proj")

    def _softmax_main(self, name: str, u: Tensor) -> Tensor:
        q, k, v = F.linear(u, self.w[f"{name}.qkv.weight"]).chunk(3, -1)
        q = self._turn(self._heads(self._norm(q, f"{name}.q_norm", 1e-5)))
        k = self._turn(self._heads(self._norm(k, f"{name}.k_norm", 1e-5)))
        read = self._attention(q, k, self._heads(v), self.config.softmax_scale)
        return read.transpose(1, 2).flatten(2)

    def _delta_main(self, name: str, u: Tensor) -> Tensor:
        q, k, v = F.linear(u, self.w[f"{name}.qkv.weight"]).chunk(3, -1)
        k = self._key_conv(k, f"{name}.conv_k.weight")
        q = self._heads(F.relu(self._norm(q, f"{name}.q_norm", 1e-5)))
        k = self._heads(F.relu(self._norm(k, f"{name}.k_norm", 1e-5)) * self._key_scale())
        beta, decay = self._gates(name, u)
        v = self._heads(v)
        num = self._scan(self._turn(q), self._turn(k), v, beta, decay)
        den = self._scan(q, k, torch.ones_like(v[..., :1]), beta, decay)
        return (num / (den + 1e-8)).transpose(1, 2).flatten(2)

    def _delta_camera(self, name: str, u: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k = self._key_conv(k, f"{name}.conv_k_cam.weight")
        q = F.relu(self._norm(q, f"{name}.q_norm_cam", 1e-5))
        k = F.relu(self._norm(k, f"{name}.k_norm_cam", 1e-5)) * self._key_scale()
        before = self._heads(k).norm(dim=-1).clamp(min=1e-6)
        seen_q, seen_k, seen_v = self._see(q, k, v)
        beta, decay = self._gates(name, u)
        growth = (seen_k.norm(dim=-1).clamp(min=1e-6) / before).square()  # b h n
        growth = growth.unflatten(-1, (self.frames, -1)).mean(-1).clamp(min=1)
        beta = beta / growth.repeat_interleave(self.tokens, -1)
        return self._scan(seen_q, seen_k, seen_v, beta, decay)

    def _gates(self, name: str, u: Tensor) -> tuple[Tensor, Tensor]:
        """β b h n and γ b h t."""
        beta = torch.sigmoid(self._linear(u, f"{name}.beta_proj")).mT
        mean = u.unflatten(1, (self.frames, -1)).mean(2)
        rate = F.softplus(self._linear(mean, f"{name}.gate_proj") + self.w[f"{name}.dt_bias"])
        return beta, torch.exp(-self.w[f"{name}.A_log"].exp() * rate).mT

    def _scan(self, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
        """b h n d each → b h n v."""
        q, k, v, beta = (z.unflatten(2, (self.frames, -1)) for z in (q, k, v, beta))
        past = q.new_zeros((*q.shape[:2], v.shape[-1], k.shape[-1]))
        return scan_reference(k, v, beta, decay, past).read(q).flatten(2, 3)

    def _key_conv(self, key: Tensor, weight: str) -> Tensor:
        """Causal and anti-causal grouped convolutions over time, one centre tap taken off."""
        w = self.w[weight]
        line = key.unflatten(1, (self.frames, -1)).permute(0, 2, 3, 1).flatten(0, 1)  # (b s) c t
        past = F.conv1d(F.pad(line, (3, 0)), w, groups=w.shape[0])
        future = F.conv1d(F.pad(line.flip(-1), (3, 0)), w, groups=w.shape[0]).flip(-1)
        both = past + future - w[None, :, 0, -1:] * line
        return both.unflatten(0, (key.shape[0], -1)).permute(0, 3, 1, 2).flatten(1, 2)

    def _key_scale(self) -> float:
        return float(self.config.head_dim) ** -0.5 * float(self.tokens) ** -0.5

    # --- positions and rays -------------------------------------------------------------------

    def _turn(self, x: Tensor, sign: int = 1) -> Tensor:
        """Rotary positions of b h n d' (the whole head, or the camera's half)."""
        d, r = self.config.head_dim, x.shape[-1]
        angles = []
        for pairs, base, axis in zip(axis_pairs(r), axis_pairs(d), range(3), strict=True):
            place = torch.stack(
                torch.meshgrid(
                    *(torch.arange(n) for n in (self.frames, self.rows, self.columns)),
                    indexing="ij",
                )
            )[axis].flatten()
            frequency = [10000.0 ** (-j / base) for j in range(pairs)]
            angles.append(place[:, None] * torch.tensor(frequency, dtype=torch.float64))
        angle = sign * torch.cat(angles, -1)
        pair = x.unflatten(-1, (-1, 2))
        cos, sin = angle.cos().float(), angle.sin().float()
        even = pair[..., 0] * cos - pair[..., 1] * sin
        odd = pair[..., 0] * sin + pair[..., 1] * cos
        return torch.stack((even, odd), -1).flatten(-2)

    def _see(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q, k, v (b n c) in ray coordinates, b h n d, none longer than before."""
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        return (
            self._shrunk(self._ucpe(q, self.into.mT), q),
            self._shrunk(self._ucpe(k, self.out), k),
            self._shrunk(self._ucpe(v, self.out), v),
        )

    def _unsee(self, x: Tensor) -> Tensor:
        """b h n d → b n c, back out of ray coordinates."""
        return self._ucpe(x, self.into, sign=-1).transpose(1, 2).flatten(2)

    def _ucpe(self, x: Tensor, matrix: Tensor, sign: int = 1) -> Tensor:
        half = x.shape[-1] // 2
        groups = x[..., :half].unflatten(-1, (-1, 4))
        mapped = torch.einsum("bnij,bhngj->bhngi", matrix, groups).flatten(-2)
        return torch.cat((mapped, self._turn(x[..., half:], sign)), -1)

    @staticmethod
    def _shrunk(after: Tensor, before: Tensor) -> Tensor:
        def rms(x: Tensor) -> Tensor:
            return (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()

        return after * (rms(before) / rms(after)).clamp(max=1)

    # --- the rest -----------------------------------------------------------------------------

    def _cross(self, name: str, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        q = self._heads(self._norm(self._linear(x, f"{name}.q_linear"), f"{name}.q_norm", 1e-6))
        k, v = self._linear(y, f"{name}.kv_linear").chunk(2, -1)
        k = self._heads(self._norm(k, f"{name}.k_norm", 1e-6))
        scores = q @ k.mT / math.sqrt(self.config.head_dim)
        scores = scores.masked_fill(~mask[:, None, None, :], -math.inf)
        read = scores.softmax(-1) @ self._heads(v)
        return self._linear(read.transpose(1, 2).flatten(2), f"{name}.proj")

    def _ffn(self, name: str, u: Tensor) -> Tensor:
        w = self.w
        picture = u.unflatten(1, (self.frames, self.rows, self.columns)).permute(0, 1, 4, 2, 3)
        conv = f"{name}.inverted_conv.conv"
        y = F.silu(F.conv2d(picture.flatten(0, 1), w[f"{conv}.weight"], w[f"{conv}.bias"]))
        conv = f"{name}.depth_conv.conv"
        y = F.conv2d(y, w[f"{conv}.weight"], w[f"{conv}.bias"], padding=1, groups=y.shape[1])
        a, g = y.chunk(2, 1)
        f = F.conv2d(a * F.silu(g), w[f"{name}.point_conv.conv.weight"])  # (b t) c rows columns
        line = f.flatten(2).unflatten(0, (u.shape[0], -1)).transpose(1, 2)  # b c t s
        line = line + F.conv2d(line, w[f"{name}.t_conv.weight"], padding=(1, 0))
        return line.flatten(2).mT

    def _attention(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        return (q @ k.mT * scale).softmax(-1) @ v

    def _heads(self, x: Tensor) -> Tensor:
        """b n c → b h n d."""
        return x.unflatten(-1, (self.config.heads, -1)).transpose(1, 2)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str, eps: float) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * self.w[f"{name}.weight"]

    @staticmethod
    def _channels(x: Tensor) -> Tensor:
        """b c t h w → b n c."""
        return x.flatten(2).mT
