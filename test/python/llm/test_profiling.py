"""`relax-llm bench --profile` and `--ablate`, on tiny models."""

import json

import pytest
from tiny_models import CONFIG, random_weights, write_hf

from relax_mlir.llm import load
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.decoder.decoder import Settings
from relax_mlir.llm.measurement import ablation, profiling
from relax_mlir.llm.measurement.benchmark import Case, Plan
from relax_mlir.machine.limits import Limits, Machine
from relax_mlir.tools import relax_llm

PLAN = Plan(threads=[1], prompts=[9], generated=2, contexts=[0, 5], rounds=1)
MACHINE = Machine("some", 1, (Limits(1, 1e10, 1e10, 1e11, None, None),))


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return str(write_hf(tmp_path_factory.mktemp("model") / "tiny", random_weights()))


def test_profiles_count_what_a_decoder_does(model):
    prompt, step = profiling.profile_cases(
        load(model), [Case(1, prompt=9), Case(1, generated=4, context=5)], capacity=16
    )
    matrices = sum(
        rows * columns
        for name, (rows, columns) in (
            (name, shape) for name, shape in CONFIG.weight_shapes().items() if len(shape) == 2
        )
        if name.startswith("model.layers")
    )
    head = CONFIG.vocab_size * CONFIG.hidden_size
    for found, new in ((prompt, 9), (step, 1)):
        products = 2 * (new * matrices + head)
        counted = sum(span.flops for span in found.spans)
        assert products < counted < 1.2 * products
        moved = sum(span.bytes for span in found.spans)
        assert 4 * (matrices + head) < moved < 1.5 * 4 * (matrices + head)
    assert step.name == "step after 5 tokens"


def test_profile_on_the_command_line(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("relax_mlir.machine.measure.this_machine", lambda refresh: MACHINE)
    trace = tmp_path / "trace.json"
    command = ["bench", model, "--profile", str(trace), "--threads=1", "--rounds=1", "--tg=1"]
    assert relax_llm.main([*command, "--pp=9", "--context=0,5"]) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.startswith(("pp9:", "step after 5"))]
    assert "of roof" in shown
    assert {event["pid"] for event in json.loads(trace.read_text())["traceEvents"]} == {0, 1, 2}


def test_ablation_leaves_out_one_thing_at_a_time(model):
    checkpoint = open_checkpoint(model)
    results = ablation.ablate(checkpoint, Settings(), PLAN)
    found = results["variants"]
    whole, plain = found[ablation.WHOLE], found["no fusion"]
    assert plain["kernels"] > whole["kernels"]
    arenas = [each["arena bytes"]["pp9"] for each in (found["no memory planning"], whole)]
    assert arenas[0] > arenas[1] > 0
    for row in results["results"]:
        assert all(row["rates"][variant.name] > 0 for variant in ablation.VARIANTS)
    rows = ablation.table(results).splitlines()[2:-1]
    assert [row[:20].strip() for row in rows] == [each.name for each in ablation.VARIANTS]
    assert rows[0].count("(1.00)") == 3


def test_variants_that_take_the_same_weights_share_them(model, monkeypatch):
    made = []
    load_parameters = ablation.load_parameters

    def counted(source, parameters, executable, *others):
        made.append(executable)
        return load_parameters(source, parameters, executable, *others)

    monkeypatch.setattr(ablation, "load_parameters", counted)
    ablation.ablate(open_checkpoint(model), Settings(), PLAN)
    assert len(made) < len(ablation.VARIANTS)


def test_kinds_of_measurement_exclude_each_other(capsys):
    with pytest.raises(SystemExit) as failure:
        relax_llm.main(["bench", "--ablate", "--profile", "trace.json"])
    assert failure.value.code == 2
    assert "not allowed with" in capsys.readouterr().err
