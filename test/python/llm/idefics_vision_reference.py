"""Writes `Inputs/idefics_vision.npz`: what `transformers` computes of a tiny SmolVLM.

    python test/python/llm/idefics_vision_reference.py

Needs `transformers`, PyTorch and Pillow; `test_idefics_vision.py` compares with its output.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from tiny_idefics_vision import EDGE, FACTOR, IMAGE, PATCH, PROMPTS, STEPS, write
from tiny_vision import PICTURES, integers, picture
from transformers import AutoModelForImageTextToText, PreTrainedTokenizerFast
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

ROWS = (EDGE // PATCH // FACTOR) ** 2


def main() -> None:
    """Tiles and rows of images, tokens and logits of prompts, and what follows greedily."""
    result = {}
    with tempfile.TemporaryDirectory() as name:
        folder = write(Path(name))
        model, loading = AutoModelForImageTextToText.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True, attn_implementation="eager"
        )
        wrong = {kind: names for kind, names in loading.items() if names}
        if wrong:
            raise SystemExit(str(wrong))
        processor = Idefics3ImageProcessorPil.from_pretrained(folder)
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    model.eval()
    tiles, texts = {}, {}
    for image in PICTURES:
        given = processor(
            images=[[Image.fromarray(picture(image))]],
            return_row_col_info=True,
            return_tensors="pt",
        )
        tiles[image] = given.pixel_values
        rows, columns = given["rows"][0][0], given["cols"][0][0]
        texts[image] = get_image_prompt_string(rows, columns, ROWS, "<fake_token_around_image>",
                                               IMAGE, "<global-img>")  # fmt: skip
        result[f"{image}/tiles"] = np.stack([integers(x.numpy()) for x in given.pixel_values[0]])
        with torch.no_grad():
            result[f"{image}/rows"] = (
                model.model.get_image_features(given.pixel_values).pooler_output[0].numpy()
            )
    for prompt, (text, names) in PROMPTS.items():
        first, *others = text.split(IMAGE)
        for name, rest in zip(names, others):
            first += texts[name] + rest
        ids = torch.tensor([tokenizer.encode(first, add_special_tokens=False)])
        options = {}
        if names:
            options["pixel_values"] = torch.cat([tiles[name] for name in names], 1)
        with torch.no_grad():
            logits = model(ids, **options).logits[0].numpy()
            out = model.generate(
                ids, **options, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False
            )
        result[f"{prompt}/ids"] = ids[0].numpy()
        result[f"{prompt}/logits"] = logits[-8:]
        result[f"{prompt}/tokens"] = out[0, ids.shape[1] :].numpy()
        print(prompt, ids.shape, logits.std(), result[f"{prompt}/tokens"][:12])
    np.savez_compressed(Path(__file__).parent / "Inputs" / "idefics_vision.npz", **result)


if __name__ == "__main__":
    main()
