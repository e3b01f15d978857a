"""Answers rows of data sets of Ray: each actor of a pool loads the model once.

Source: Ray's documentation, "Transforming Data", stateful transforms.
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any

import pyarrow

from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.engine import MAX_SEQUENCES, Engine
from relax_mlir.llm.offline.answering import answers_of
from relax_mlir.llm.offline.jobs import FIELDS, Job, begin, check_fields

ADDED = {
    "text": pyarrow.string(),
    "finish": pyarrow.string(),
    "prompt_tokens": pyarrow.int64(),
    "tokens": pyarrow.int64(),
    "error": pyarrow.string(),
}
"""The columns of an answer: `error` instead of the others if the row is wrong."""


class Answerer:
    """What `Dataset.map_batches` calls for batches of the format "pyarrow".

    A row has a `prompt` or `messages`, and may have options: the fields of a line of `relax-llm
    batch`, of which `defaults` are for rows without them. Null is as good as absent, and other
    columns stay as they are. The columns `ADDED` come to them.

    `model` and `options` are those of `Engine.load`. Threads may call it at once. Raises UsageError
    for wrong defaults and other batches, or if a column of an answer is there already.
    """

    def __init__(
        self,
        model: str = "smollm2",
        defaults: Mapping[str, Any] | None = None,
        max_sequences: int = MAX_SEQUENCES,
        **options: Any,
    ) -> None:
        self._defaults = _present(defaults or {})
        check_fields(self._defaults)
        if own := {"prompt", "messages"} & self._defaults.keys():
            raise UsageError(f"defaults have {own.pop()!r}; expects it in rows")
        self._engine = Engine.load(model, max_sequences=max_sequences, **options)
        self._at_once = 2 * max_sequences  # prompts are ready when sequences end
        self._lock = Lock()

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """The batch, with answers."""
        if not isinstance(batch, pyarrow.Table):
            raise UsageError(
                f"a batch is of type {type(batch).__name__}; expects batch_format='pyarrow'"
            )
        if there := [name for name in ADDED if name in batch.column_names]:
            raise UsageError(
                f"rows have a column {there[0]!r} already; expects one of another name"
            )
        columns = {name: batch[name].to_pylist() for name in FIELDS if name in batch.column_names}
        rows = [{name: column[i] for name, column in columns.items()} for i in range(len(batch))]
        jobs = [Job(i, _present(row)) for i, row in enumerate(rows)]
        answers = {answer["id"]: answer for answer in answers_of(self._begin, self._at_once)(jobs)}
        for name, kind in ADDED.items():
            values = [answers[i].get(name) for i in range(len(batch))]
            batch = batch.append_column(name, pyarrow.array(values, kind))
        return batch

    def _begin(self, job: Job) -> Any:
        with self._lock:
            return begin(job, self._engine, self._defaults)


def _present(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row without nulls, which tables have for what is absent, in messages too."""
    fields = {name: value for name, value in row.items() if value is not None}
    if isinstance(messages := fields.get("messages"), list):
        fields["messages"] = [_without_nulls(message) for message in messages]
    if "logit_bias" in fields:
        fields["logit_bias"] = _without_nulls(fields["logit_bias"])
    return fields


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: inner for name, inner in value.items() if inner is not None}
