"""A language model served as a stream of stages gives what `generate` does, in order."""

import runpy
from pathlib import Path

from relax_mlir import llm
from relax_mlir.dataflow import Timeline

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks/dataflow_language_model.py"


def test_streamed_requests_give_the_tokens_of_generate() -> None:
    served = runpy.run_path(str(BENCHMARK))
    model, timeline, most = llm.load("smollm2"), Timeline(), 5
    prompts = served["prompts_of"](4, 3)
    stages = served["Stages"](model, most).all
    results = served["streamed"](stages, [served["Request"](each) for each in prompts], timeline)
    served["check"](results, prompts, model, most)
    assert all(result.tokens for result in results)
    assert len(timeline.spans) == len(prompts) * len(stages)
    assert timeline.overlap() > 0
