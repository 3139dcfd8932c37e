#!/usr/bin/python3
"""Make the reference embeddings that the transformers of experiments/ are tested against."""

import os
import pathlib
import tempfile

import seeded_transformer
from capture_activations import (Model, check_card_sentence, h5py, np, source_attributes, tokenize, unit_mean,
                                 write_tensors)
from fetch_minilm import EXIT_USAGE, Parser, Trouble, add_cache_option, fetch, file_sha256, run
from sentences import SENTENCES

FOLDER = pathlib.Path(__file__).parent
FILES = {"seeded": FOLDER / "seeded_transformer.h5", "minilm": FOLDER / "minilm_sentences.h5"}
CAPTURE = ("float64 forward pass in numpy by datasets/make_reference.py, each sentence by itself and without "
           "padding, rounded to float32")

# The captured activations that the seeded reference holds, and the graph's names for them.
NODES = {
    "attention_output": "context",
    "attention_residual": "attention_residual",
    "ffn_input": "attention_norm",
    "ffn_down_input": "gelu",
    "ffn_residual": "output_residual",
}


def pad(sentences):
    """Return token numbers (0 behind the end) and mask of sentences as matrices."""
    ids = np.zeros((len(sentences), max(map(len, sentences))), dtype=np.int64)
    mask = np.zeros(ids.shape, dtype=np.float32)
    for row, tokens in enumerate(sentences):
        ids[row, :len(tokens)] = tokens
        mask[row, :len(tokens)] = 1.0
    return {"ids": ids, "mask": mask}


def layer_outputs(results, layers):
    """Return what happens inside of the layers by the graph's names; rows are the tokens of all sentences."""
    def rows(find):
        return np.concatenate([find(outputs, captured) for outputs, captured in results])

    tensors = {"embeddings": rows(lambda _, captured: captured["activation/layer0/qkv_input"])}
    for number in range(layers):
        for activation, node in NODES.items():
            key = f"activation/layer{number}/{activation}"
            tensors[f"layer{number}/{node}"] = rows(lambda _, captured, key=key: captured[key])
    tensors[f"layer{layers - 1}/output_norm"] = rows(lambda outputs, _: outputs)
    return tensors


def make_seeded(_):
    """Return tensors and attributes of the seeded transformer's reference."""
    model = seeded_transformer.model()
    sentences = seeded_transformer.sentences()
    results = [model.run(tokens) for tokens in sentences]
    tensors = {**pad(sentences), **layer_outputs(results, model.layers)}
    tensors["embedding"] = np.stack([unit_mean(outputs) for outputs, _ in results])
    return tensors, {
        "provenance": "transformer `seeded`: weights and tokens from Philox, datasets/seeded_transformer.py",
        "licence": "as this project",
        "capture": f"{CAPTURE}; rows of layers are the tokens of the sentences in order",
    }


def make_minilm(options):
    """Return tensors and attributes of the sentences and their embeddings by all-MiniLM-L6-v2."""
    model = Model(fetch(options.cache))
    check_card_sentence(model)
    texts = [text for _, _, _, text in SENTENCES]
    tensors = pad([tokenize(text, model.vocabulary) for text in texts])
    tensors["embedding"] = np.stack([model.embedding(text) for text in texts])
    attributes = source_attributes(texts)
    attributes["capture"] = CAPTURE
    attributes["licence"] = "embeddings: Apache-2.0, as the model; sentences: public domain"
    attributes["sources"] = "\n".join(f"{author}, {work} ({year})" for author, work, year, _ in SENTENCES)
    return tensors, attributes


MAKERS = {"seeded": make_seeded, "minilm": make_minilm}


def largest_difference(made, there):
    """Return the largest difference between tensors of two files, or None where names, shapes or whole numbers differ."""
    worst = 0.0
    with h5py.File(made, "r") as new, h5py.File(there, "r") as old:
        names = []
        new.visit(names.append)
        for name in names:
            if not isinstance(new[name], h5py.Dataset):
                continue
            if name not in old or new[name].shape != old[name].shape or new[name].dtype != old[name].dtype:
                return None
            values, kept = new[name][()], old[name][()]
            if np.issubdtype(values.dtype, np.integer) and (values != kept).any():
                return None
            worst = max(worst, float(np.abs(values.astype(np.float64) - kept).max()))
    return worst


def write(name, options):
    """Write one reference, or compare a new one with the file that is there."""
    path = FILES[name]
    tensors, attributes = MAKERS[name](options)
    with tempfile.TemporaryDirectory(dir=None if options.check else FOLDER) as scratch:
        made = pathlib.Path(scratch) / path.name
        write_tensors(made, tensors, attributes)
        if not options.check:
            os.replace(made, path)
        elif made.read_bytes() != path.read_bytes():
            worst = largest_difference(made, path)
            how = "other tensors" if worst is None else f"values that differ by up to {worst:.1e}"
            raise Trouble(f"{path}: differs from a new one ({how}); run make_reference.py without --check")
    print(f"{path}: {path.stat().st_size} bytes, sha256 {file_sha256(path)}")


def main():
    """Write the references, or compare new ones with the files that are there."""
    parser = Parser(description=__doc__)
    add_cache_option(parser)
    parser.add_argument("--check", action="store_true", help="compare the files with new ones and leave them alone")
    parser.add_argument("name", nargs="*", help="seeded (needs no model) or minilm (default: both)")
    options = parser.parse_args()
    for name in options.name:
        if name not in FILES:
            raise Trouble(f"{name} is no reference; there are {' and '.join(FILES)}", EXIT_USAGE)
    for name in options.name or FILES:
        write(name, options)


if __name__ == "__main__":
    run(main)
