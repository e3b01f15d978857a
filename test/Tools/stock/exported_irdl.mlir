// The committed definitions are those of the dialects; write them anew with
//   relax-opt --export-irdl dialects/irdl
// RUN: rm -rf %t && relax-opt --export-irdl %t
// RUN: diff -r %t %ROOT/dialects/irdl
