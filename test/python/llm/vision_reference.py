"""Writes `Inputs/vision.npz`: what `transformers` computes of the tiny models that read images.

    python test/python/llm/vision_reference.py

Needs `transformers`, PyTorch and Pillow; `test_vision.py` compares with its output.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from PIL import Image
from tiny_vision import CASES, IMAGE, PICTURES, integers, picture, write
from transformers import AutoModelForImageTextToText, PreTrainedTokenizerFast
from vision_prompts import PROMPTS, STEPS


def processor_of(folder: Path, case: str) -> object:
    """The image processor, which resizes by Pillow."""
    name = CASES[case]["preprocessor"]["image_processor_type"]
    return getattr(transformers, f"{name}Pil").from_pretrained(folder)


def main() -> None:
    """Pixels and rows of images, logits of prompts, and the tokens that follow greedily."""
    found = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            folder = write(Path(name), case)
            model, loading = AutoModelForImageTextToText.from_pretrained(
                folder, dtype=torch.float32, output_loading_info=True, attn_implementation="eager"
            )
            wrong = {kind: names for kind, names in loading.items() if names}
            if wrong:
                raise SystemExit(f"{case}: {wrong}")
            processor = processor_of(folder, case)
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        model.eval()
        pixels = {}
        for image in PICTURES:
            given = processor(images=Image.fromarray(picture(image)), return_tensors="pt")
            pixels[image] = given.pixel_values
            found[f"{case}/{image}/pixels"] = integers(given.pixel_values[0].numpy())
            with torch.no_grad():
                rows = model.model.get_image_features(pixels[image]).pooler_output[0]
            found[f"{case}/{image}/rows"] = rows.numpy()
        for prompt, (text, images) in PROMPTS.items():
            expanded = text.replace(IMAGE, IMAGE * len(rows))
            ids = torch.tensor([tokenizer.encode(expanded, add_special_tokens=False)])
            options = {}
            if images:
                options["pixel_values"] = torch.cat([pixels[image] for image in images])
            with torch.no_grad():
                logits = model(ids, **options).logits[0].numpy()
                out = model.generate(
                    ids, **options, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False
                )
            found[f"{case}/{prompt}/logits"] = logits[-8:]
            found[f"{case}/{prompt}/tokens"] = out[0, ids.shape[1] :].numpy()
            print(case, prompt, logits.std(), found[f"{case}/{prompt}/tokens"][:12])
    np.savez_compressed(Path(__file__).parent / "Inputs" / "vision.npz", **found)


if __name__ == "__main__":
    main()
