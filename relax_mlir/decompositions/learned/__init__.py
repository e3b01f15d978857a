"""Models of `ai.onnx.ml` that have tables in place of weights: trees, encoders of labels."""

from .features import array_feature_extractor, binarizer, label_encoder
from .trees import Trees, tree_ensemble

__all__ = ["Trees", "array_feature_extractor", "binarizer", "label_encoder", "tree_ensemble"]
