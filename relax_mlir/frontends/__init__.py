"""Importers of models of other frameworks; each needs an extra of its package.

imported = relax_mlir.frontends.onnx.from_onnx("model.onnx")
model = relax_mlir.compile(imported)
y = model["main"](x)
"""
