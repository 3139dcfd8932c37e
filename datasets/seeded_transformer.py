"""The weights and token numbers of the small transformer `seeded`, made from Philox words in integers.

experiments/model_seeded.c says how, and makes the same ones.
"""

from capture_activations import Transformer, np

SEED = 7
LAYERS, HEADS, HIDDEN, FFN = 2, 4, 64, 256
VOCABULARY, POSITIONS, TYPES = 384, 32, 2
LENGTHS = (12, 7, 3, 10, 5, 12, 9, 4)
TOKENS = max(LENGTHS)
SENTENCE_BEGIN, SENTENCE_END, FIRST_WORD = 1, 2, 3


def philox_words(stream, count):
    """Return the first words of a stream: Philox4x32-10 (Salmon et al., SC 2011)."""
    quads = np.arange((count + 3) // 4, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    words = [quads & low, quads >> half, np.full_like(quads, stream), np.zeros_like(quads)]
    keys = [SEED & 0xFFFFFFFF, SEED >> 32]
    for _ in range(10):
        product0 = np.uint64(0xD2511F53) * words[0]
        product1 = np.uint64(0xCD9E8D57) * words[2]
        words = [(product1 >> half) ^ words[1] ^ np.uint64(keys[0]), product1 & low,
                 (product0 >> half) ^ words[3] ^ np.uint64(keys[1]), product0 & low]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(words, axis=1).ravel()[:count]


def stream_of(name):
    """Return the 32-bit FNV-1a hash of a name."""
    value = 2166136261
    for byte in name.encode("ascii"):
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def tensor(name, shape, scale, offset=0.0):
    """Return float32 values offset + scale * u with u in [-1, 1) from 24 bits of a word each."""
    words = (philox_words(stream_of(name), int(np.prod(shape))) >> np.uint64(8)).astype(np.int64)
    exact = offset + scale * ((words - 2 ** 23) / 2 ** 23)
    return exact.astype(np.float32).reshape(shape)


def dense(name, outputs, inputs, scale):
    """Return the weight and the bias of a dense layer by name."""
    return {f"{name}.weight": tensor(f"{name}.weight", (outputs, inputs), scale),
            f"{name}.bias": tensor(f"{name}.bias", (outputs,), 1 / 8)}


def layer_norm(name):
    """Return the gain and the bias of a layer normalisation by name."""
    return {f"{name}.weight": tensor(f"{name}.weight", (HIDDEN,), 1 / 4, 1.0),
            f"{name}.bias": tensor(f"{name}.bias", (HIDDEN,), 1 / 8)}


def weights():
    """Return all tensors by name."""
    tensors = layer_norm("embeddings.LayerNorm")
    for part, rows in (("word", VOCABULARY), ("position", POSITIONS), ("token_type", TYPES)):
        name = f"embeddings.{part}_embeddings.weight"
        tensors[name] = tensor(name, (rows, HIDDEN), 1 / 16)
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            tensors.update(dense(f"{layer}.attention.{part}", HIDDEN, HIDDEN, 1 / 4))
        tensors.update(layer_norm(f"{layer}.attention.output.LayerNorm"))
        tensors.update(dense(f"{layer}.intermediate.dense", FFN, HIDDEN, 1 / 4))
        tensors.update(dense(f"{layer}.output.dense", HIDDEN, FFN, 1 / 8))
        tensors.update(layer_norm(f"{layer}.output.LayerNorm"))
    return tensors


def sentences():
    """Return the token numbers of each sentence, without padding."""
    words = philox_words(stream_of("ids"), len(LENGTHS) * TOKENS).reshape(len(LENGTHS), TOKENS)
    inner = FIRST_WORD + ((words * np.uint64(VOCABULARY - FIRST_WORD)) >> np.uint64(32)).astype(np.int64)
    return [[SENTENCE_BEGIN, *inner[number, 1:length - 1].tolist(), SENTENCE_END]
            for number, length in enumerate(LENGTHS)]


def model():
    """Return the transformer."""
    return Transformer(weights(), LAYERS, HEADS)
