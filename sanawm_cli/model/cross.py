"""Cross-attention to the prompt, and the prompt's embedding."""

from torch import Tensor, nn
from torch.nn import functional as F

from sanawm_cli.configs import NetworkConfig
from sanawm_cli.model.context import TextContext
from sanawm_cli.model.memory import KeyValue
from sanawm_cli.model.parts import CROSS_NORM_EPS, Linear, RMSNorm


class TextProjection(nn.Module):
    """fc2(GELU(fc1(embeds))): text channels → width."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.fc1 = Linear(config.text_channels, config.width)
        self.fc2 = Linear(config.width, config.width)

    def forward(self, embeds: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(embeds), approximate="tanh"))


class TextEmbedder(nn.Module):
    """A `TextProjection` under the name `y_proj`, as the checkpoints have it."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.y_proj = TextProjection(config)

    def forward(self, embeds: Tensor) -> Tensor:
        return self.y_proj(embeds)


class CrossAttention(nn.Module):
    """Per-head softmax over the prompt's tokens, scale 1/√d."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.q_linear = Linear(width, width)
        self.kv_linear = Linear(width, 2 * width)
        self.q_norm = RMSNorm(width, CROSS_NORM_EPS)
        self.k_norm = RMSNorm(width, CROSS_NORM_EPS)
        self.proj = Linear(width, width)

    def read_text(self, text: Tensor) -> KeyValue:
        """Keys and values of the embedded prompt (b l c); they hold for the whole clip."""
        k, v = self.kv_linear(text).chunk(2, -1)
        return KeyValue(self.split(self.k_norm(k).to(v.dtype)), self.split(v))

    def forward(self, x: Tensor, text: KeyValue, mask: Tensor | None) -> Tensor:
        """x: b t s c → b t s c."""
        q = self.split(self.q_norm(self.q_linear(x)).to(x.dtype).flatten(1, 2))
        read = F.scaled_dot_product_attention(q, text.key, text.value, attn_mask=mask)
        return self.proj(read.transpose(1, 2).reshape(x.shape))

    def split(self, x: Tensor) -> Tensor:
        """b l c → b h l d."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2).contiguous()


def text_context(text: Tensor, mask: Tensor, blocks: list[CrossAttention]) -> TextContext:
    """Keys and values of every block. Tokens that are padding in all rows are left out.

    text: b l c, embedded and normalised; mask: b l bool. Padding gets no attention, so
    dropping it changes nothing but the cost (300 tokens against the 40 of a short prompt).
    """
    used = mask.any(0)
    text, mask = text[:, used], mask[:, used]
    # Zeros, so that a padding token cannot matter even if its embedding is NaN (0 · NaN is NaN).
    text = text.masked_fill(~mask[..., None], 0)
    padding = None if bool(mask.all()) else mask[:, None, None, :]
    return TextContext(tuple(block.read_text(text) for block in blocks), padding)
