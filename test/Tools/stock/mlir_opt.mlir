// REQUIRES: mlir-opt
// RUN: %PYTHON %ROOT/test/lib/stock_mlir_opt.py mlir-opt %ROOT/dialects/irdl %ROOT/test/Dialect %ROOT/test/Transforms %ROOT/test/Integration
