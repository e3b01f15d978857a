// Each wrong pipeline is one line and exit status 2, without a traceback.

// RUN: exits 2 relax-opt %s --pass-pipeline='canonicaliz' 2>&1 | FileCheck %s --check-prefix=NEAR
// NEAR: relax-opt: unknown pass 'canonicaliz'; did you mean 'canonicalize'?
// NEAR-NOT: Traceback

// RUN: exits 2 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-tog' 2>&1 | FileCheck %s --check-prefix=OWN
// OWN: relax-opt: unknown pass 'test-tog'; did you mean 'test-tag'?

// RUN: exits 2 relax-opt %s --pass-pipeline='canonicalize{foo=1}' 2>&1 | FileCheck %s --check-prefix=UPSTREAM
// UPSTREAM: relax-opt: pass 'canonicalize' has no option 'foo'

// RUN: exits 2 relax-opt %s --pass-pipeline='canonicalize{max-iterations=x}' 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: relax-opt: pass 'canonicalize' does not accept the options 'max-iterations=x'

// RUN: exits 2 relax-opt %s --pass-pipeline='affine-super-vectorize' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// ANCHOR: relax-opt: pass 'affine-super-vectorize' is for 'func.func'; write func.func(affine-super-vectorize)

// RUN: exits 2 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-tag{cuont=4}' 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: relax-opt: pass 'test-tag' has no option 'cuont'; did you mean 'count'?

// RUN: exits 2 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-fail{x}' 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: relax-opt: pass 'test-fail' has no option 'x'; it has none

// RUN: exits 2 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-tag{count=four}' 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: relax-opt: option 'count' of pass 'test-tag' is an integer, but got 'four'

// RUN: exits 2 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-tag{verbose=maybe}' 2>&1 | FileCheck %s --check-prefix=BOOL
// BOOL: relax-opt: option 'verbose' of pass 'test-tag' is true or false, but got 'maybe'

// RUN: exits 2 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-needs-option' 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: relax-opt: pass 'test-needs-option' needs the option 'size'

// RUN: exits 2 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='test-needs-option{size=0}' 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: relax-opt: pass 'test-needs-option': size must be positive, but is 0

// RUN: exits 2 relax-opt %s --load-passes=%ROOT/test/lib/test_passes.py --pass-pipeline='any(any(test-tag))' 2>&1 | FileCheck %s --check-prefix=ANY
// ANY: relax-opt: 'any(test-tag)' must name the ops it is for instead of 'any'

// RUN: exits 2 relax-opt %s --pass-pipeline='builtin.module(cse' 2>&1 | FileCheck %s --check-prefix=PAREN
// PAREN: relax-opt: expected ')' at column 19 of the pipeline 'builtin.module(cse'

// RUN: exits 2 relax-opt %s --pass-pipeline='cse{' 2>&1 | FileCheck %s --check-prefix=BRACE
// BRACE: relax-opt: expected '}' at column 5 of the pipeline 'cse{'

// RUN: exits 2 relax-opt %s --pass-pipeline='cse,,cse' 2>&1 | FileCheck %s --check-prefix=COMMA
// COMMA: relax-opt: expected the name of a pass at column 5 of the pipeline 'cse,,cse'

// RUN: exits 2 relax-opt %s --pass-pipeline='cse)' 2>&1 | FileCheck %s --check-prefix=EXTRA
// EXTRA: relax-opt: unexpected ')' at column 4 of the pipeline 'cse)'

// RUN: exits 2 relax-opt %s --pass-pipeline='func.func(cse)' 2>&1 | FileCheck %s --check-prefix=ROOT
// ROOT: relax-opt: the pipeline is for 'func.func', but got 'builtin.module'

module {}
