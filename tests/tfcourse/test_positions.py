"""Positions against Marian's table of sinusoids and Wav2Vec2-BERT's relative attention."""

import torch
from transformers import Wav2Vec2BertConfig
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import Wav2Vec2BertSelfAttention

from tfcourse.positions import relative_attention, sinusoidal_positions


def test_sinusoids_are_marians_which_has_the_sines_before_the_cosines():
    for length, width in ((1, 2), (20, 12), (513, 64)):
        table = MarianSinusoidalPositionalEmbedding(length, width)
        expected = table.create_weight() if hasattr(table, "create_weight") else table.weight
        actual = sinusoidal_positions(length, width)
        halves = torch.cat([actual[:, 0::2], actual[:, 1::2]], dim=1)
        torch.testing.assert_close(halves, expected.detach().float(), rtol=0, atol=1e-6)


def test_relative_attention_on_keys_is_that_of_wav2vec2_bert() -> None:
    config = Wav2Vec2BertConfig(
        hidden_size=12,
        num_attention_heads=3,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=4,
        right_max_position_embeddings=4,
        attention_dropout=0.0,
    )
    theirs = Wav2Vec2BertSelfAttention(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(parameter.numel()))
    x = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(5))
    expected = theirs(x)[0]
    q, k, v = (getattr(theirs, f"linear_{name}")(x).unflatten(-1, (3, 4)).transpose(1, 2) for name in ("q", "k", "v"))
    heads = relative_attention(q, k, v, theirs.distance_embedding.weight)
    torch.testing.assert_close(theirs.linear_out(heads.transpose(1, 2).flatten(2)), expected, atol=1e-5, rtol=1e-5)
