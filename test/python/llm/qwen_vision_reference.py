"""Writes `Inputs/qwen_vision.npz`: what `transformers` computes of tiny models of Qwen's families.

    python test/python/llm/qwen_vision_reference.py

Needs `transformers`, PyTorch and Pillow; `test_qwen_vision.py` compares with its output.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from tiny_qwen_vision import CASES, IMAGE_ID, PAD, PROMPTS, STEPS, write
from tiny_vision import PICTURES, integers, picture
from transformers import AutoModelForImageTextToText, PreTrainedTokenizerFast
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil


def main() -> None:
    """Patches and rows of images, logits of prompts, and the tokens that follow greedily."""
    result = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            folder = write(Path(name), case)
            model, loading = AutoModelForImageTextToText.from_pretrained(
                folder, dtype=torch.float32, output_loading_info=True, attn_implementation="eager"
            )
            wrong = {kind: names for kind, names in loading.items() if names}
            if wrong:
                raise SystemExit(f"{case}: {wrong}")
            processor = Qwen2VLImageProcessorPil.from_pretrained(folder)
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        model.eval()
        images = {
            image: processor(images=Image.fromarray(picture(image)), return_tensors="pt")
            for image in PICTURES
        }
        for image, given in images.items():
            patches = given.pixel_values.numpy().reshape(len(given.pixel_values), 3, 2, -1)
            assert (patches[:, :, 0] == patches[:, :, 1]).all()
            result[f"{image}/patches"] = integers(patches[:, :, 0].transpose(1, 0, 2))
            result[f"{image}/grid"] = given.image_grid_thw[0].numpy()
            with torch.no_grad():
                rows = model.model.get_image_features(given.pixel_values, given.image_grid_thw)
            result[f"{case}/{image}/rows"] = rows.pooler_output[0].numpy()
        for prompt, (text, names) in PROMPTS.items():
            answer(result, model, tokenizer, f"{case}/{prompt}", text, [images[n] for n in names])
    np.savez_compressed(Path(__file__).parent / "Inputs" / "qwen_vision.npz", **result)


def answer(result: dict, model, tokenizer, key: str, text: str, images: list) -> None:
    """Adds the logits of a prompt, and the tokens that follow."""
    first, *others = text.split(PAD)
    for given, rest in zip(images, others):
        first += PAD * (int(given.image_grid_thw.prod()) // 4) + rest
    ids = torch.tensor([tokenizer.encode(first, add_special_tokens=False)])
    options = {}
    if images:
        options["pixel_values"] = torch.cat([given.pixel_values for given in images])
        options["image_grid_thw"] = torch.cat([given.image_grid_thw for given in images])
        options["mm_token_type_ids"] = (ids == IMAGE_ID).int()
    model.model.rope_deltas = None
    with torch.no_grad():
        logits = model(ids, **options).logits[0].numpy()
        model.model.rope_deltas = None
        out = model.generate(
            ids, **options, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False
        )
    result[f"{key}/logits"] = logits[-8:]
    result[f"{key}/tokens"] = out[0, ids.shape[1] :].numpy()
    print(key, ids.shape, logits.std(), result[f"{key}/tokens"][:12])


if __name__ == "__main__":
    main()
