#!/usr/bin/python3
"""Make minilm.h5, the fixture of real weights and activations, from the fetched model."""

import hashlib
import os
import pathlib
import tempfile

from capture_activations import (SENTENCES, Model, capture, check_card_sentence, check_paraphrases, h5py, np,
                                 print_table, source_attributes, write_tensors)
from fetch_minilm import Parser, Trouble, add_cache_option, check_output_folder, fetch, file_sha256, run

SIZE_LIMIT = 2_000_000

WEIGHTS = (
    "encoder.layer.0.attention.self.query.weight",
    "encoder.layer.0.attention.output.dense.weight",
)
ACTIVATIONS = (
    "activation/layer0/qkv_input",
    "activation/layer2/attention_output",
    "activation/layer3/ffn_input",
    "activation/layer2/ffn_residual",
    "activation/layer0/ffn_down_input",
    "activation/layer4/ffn_down_input",
)


def collect_tensors(model):
    """Return the fixture's tensors by name, after the checks of the forward pass."""
    check_card_sentence(model)
    embeddings, activations = capture(model, SENTENCES)
    check_paraphrases(embeddings)
    tensors = {name: model.float32[name] for name in WEIGHTS}
    tensors.update({name: activations[name] for name in ACTIVATIONS})
    return tensors


def verify(path, tensors):
    """Check the written file's size, values and digests."""
    size = path.stat().st_size
    if size > SIZE_LIMIT:
        raise Trouble(f"{path}: {size} bytes, more than {SIZE_LIMIT}; take fewer tensors")
    with h5py.File(path, "r") as file:
        for name in tensors:
            values = file[name][()]
            if not np.isfinite(values).all():
                raise Trouble(f"{path}: {name} has values that are not finite; check the model files")
            if hashlib.sha256(values.tobytes()).hexdigest() != file[name].attrs["digest"].decode("ascii"):
                raise Trouble(f"{path}: {name} differs from its digest; make the fixture again")


def main():
    """Write the fixture, or compare a new one with the file that is there."""
    parser = Parser(description=__doc__)
    add_cache_option(parser)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).with_name("minilm.h5"),
                        metavar="FILE", help="the fixture's file (default: minilm.h5 beside this script)")
    parser.add_argument("--check", action="store_true", help="compare FILE with a new fixture and leave it alone")
    options = parser.parse_args()
    check_output_folder(options.output)
    tensors = collect_tensors(Model(fetch(options.cache)))
    print_table(tensors)
    with tempfile.TemporaryDirectory(dir=None if options.check else options.output.parent) as scratch:
        made = pathlib.Path(scratch) / "minilm.h5"
        write_tensors(made, tensors, source_attributes(SENTENCES))
        verify(made, tensors)
        if not options.check:
            os.replace(made, options.output)
        elif made.read_bytes() != options.output.read_bytes():
            raise Trouble(f"{options.output}: differs from a new fixture; run make_fixture.py without --check")
    print(f"{options.output}: {options.output.stat().st_size} bytes, sha256 {file_sha256(options.output)}")


if __name__ == "__main__":
    run(main)
